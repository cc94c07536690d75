"""Checks that refuse a scale which cannot run, before its first run begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from math import inf
from pathlib import Path

from jsonschema.exceptions import best_match

from tailprompt.components.run import Run
from tailprompt.errors import BadInput, known
from tailprompt.files import keyed, no_file, read_json
from tailprompt.inputs.templates import has_choices, letters_of, pieces
from tailprompt.model import limits
from tailprompt.model.adapter_config import KINDS, stated
from tailprompt.model.folder import check_complete, check_family
from tailprompt.plan import blocks, brought
from tailprompt.plan.agreement import read_words
from tailprompt.plan.extras import extras, takers_of
from tailprompt.plan.home import found
from tailprompt.plan.joins import check_joined
from tailprompt.plan.named_files import check_named
from tailprompt.plan.places import in_bundle, report_file
from tailprompt.plan.points import Point, parse
from tailprompt.plan.printed import check_printed
from tailprompt.plan.rows import columns_of, dataset_row, form_of, has_passages, has_tags, is_table
from tailprompt.plan.schemas import SCHEMAS, sentence, validator
from tailprompt.plan.settings import Resolved, check_name, resolved
from tailprompt.plan.starts import keeping, start_of, starts_of
from tailprompt.plan.suits import check_dev, check_suits, check_warmup
from tailprompt.plan.writable import check_links

WIDTHS = ("hidden_size", "d_model", "embed_dim")  # keys of the width in a configuration
MASKED = ("bert", "roberta", "deberta", "deberta-v2")  # families that may have a limited number of positions
FOLDERS = "annotated backbones benchmarks data figures images logs pretraining runs tables".split()


def check_files(config: dict, root: str | Path = ".") -> None:
    """Raise BadInput if data_dir, a corpus, or a file or folder of a data set of the scale is missing.

    Also if a file has the name of a folder of results, or a number that a paper prints is faulty. The files
    of a data set that a bundle brought need not be here; what it brought must be whole.
    """
    scale = f"results/{config['scale']}"
    for folder in ("results", "results/raw", scale, *(f"{scale}/{name}" for name in FOLDERS)):
        if Path(root, folder).is_file():
            raise BadInput(f"{folder} is a file, where a folder of results is wanted; move it away")
        check_links([Path(root, folder)])
    data_dir = config.get("data_dir")
    if data_dir and not Path(root, data_dir).is_dir():
        raise BadInput(f"data_dir {data_dir} is no folder; correct it, or set data_dir: null to download")
    trains = config.get("train", True)  # else nothing is made of a corpus
    for name, path in (config.get("corpora") or {}).items():
        if trains and path and not Path(root, path).exists():
            raise BadInput(
                f"corpora.{name}: there is no {path}; correct the path, or leave it open, as where what was "
                f"made of it is here: corpora: {{{name}: null}}"
            )
    datasets = blocks.all_datasets(config)
    brought.check(Path(root, scale), datasets)
    here = [name for name in datasets if not in_bundle(report_file(Path(root, scale), name))]
    for name in dict.fromkeys(parse(dataset)[0] for dataset in here):
        row = dataset_row(config, name)
        own = {key: value for key, value in row.items() if key != "path"} if "corpus" in row else row
        check_named(name, row if trains else own, Path(root))
    check_printed(config, root)


def check_settings(config: dict, points: Iterable[Point], root: str | Path = ".") -> dict[Point, dict]:
    """The settings of each point; raises BadInput at the first point that cannot run."""
    rules = validator("config", str(Path(root, found(SCHEMAS, root))))
    find = cache(partial(resolved, config))  # many runs have one start
    asked, cells, known_as, takers = {}, {}, {}, takers_of(config)
    for point in points:
        beside = extras(config, point, takers)
        if (cell := replace(point, seed=0)) not in cells:  # what is checked does not depend on the seed
            cells[cell] = find(point).settings
            check_run(config, point, find, beside, rules, root)
            check_name(cell, find(point), known_as)
        asked[point] = cells[cell] | beside
    return asked


def check_run(
    config: dict, point: Point, find: Callable[[Point], Resolved], beside: dict, rules, root: str | Path
) -> None:
    """Raise BadInput if the settings, backbone, verbalizer or start of a run cannot be used.

    find: (run) -> what `resolved` returns. beside: what it writes besides predictions.
    """
    where = f"{point.method} on {point.dataset} under {point.protocol}:"
    check_changes(point, rules)
    run, row = find(point).run, config["backbones"][point.backbone]
    check_backbone(row, point.backbone, run, root, where)
    shape = shape_of(config, row, root)
    with said_of(where):
        check_shape(run, shape, row, f"backbone '{point.backbone}'")
    dataset = dataset_row(config, point.dataset)
    if run.input.reads != "image":
        check_shown(run, dataset, where)
        check_suits(run, dataset, beside, where)
        check_joined(run, dataset, where)
    check_dev(run, dataset, where)
    words = getattr(run.head, "verbalizer", None)
    if words and (wrong := no_file(words, root)):
        raise BadInput(f"{where} {wrong}; correct the path of the verbalizer")
    if run.input.name == "formatted":
        check_letters(run, Path(root, words) if words else None, where)
    check_warmup(run, where)
    check_start(config, point, find)
    if folder := (run.start or {}).get("folder"):
        check_adapter(run, shape, Path(root, folder), where)


@contextmanager
def said_of(where: str) -> Iterator[None]:
    """What is wrong is said of a place."""
    try:
        yield
    except BadInput as wrong:
        raise BadInput(f"{where} {wrong}") from None


def check_changes(point: Point, rules) -> None:
    """Raise BadInput if a value after the @ of a method has the wrong type or is out of bounds."""
    _, changes = parse(point.method)
    if not changes:
        return
    schema = {"$ref": "settings.schema.yaml#/$defs/method"}
    error = best_match(rules.evolve(schema=schema).iter_errors(changes))
    if error:
        raise BadInput(f"{point.method} on {point.dataset} under {point.protocol}: {sentence(error)}")


def check_backbone(row: dict, name: str, run: Run, root: str | Path, where: str) -> None:
    """Raise BadInput if a backbone does not take the input of a run, or its folder has not what it needs."""
    if row["family"] not in run.input.families:
        raise BadInput(
            f"{where} backbone '{name}' is of the family {row['family']}; "
            f"it needs one of {known(run.input.families)}"
        )
    if "path" not in row:
        return
    if not Path(root, row["path"]).is_dir():
        raise BadInput(f"backbone '{name}': there is no folder {row['path']}; correct its path in its row")
    with said_of(where):
        check_complete(row, Path(root))
        check_family(row, Path(root))


def check_shape(run: Run, shape: dict, row: dict, backbone: str) -> None:
    """Raise BadInput where a backbone of this shape cannot have a run's prompts, views or lengths."""
    width = next((shape[key] for key in WIDTHS if key in shape), None)
    limits.check_heads(shape, width=width, family=row["family"], backbone=backbone)
    limits.check_memory(
        run.tuner, width=width, depth=depth_of(shape) or shape.get("depth"), backbone=backbone
    )
    if run.input.reads == "image":
        size, patch = row.get("size", shape.get("img_size")), shape.get("patch_size")
        if type(size) is type(patch) is int and size % patch:
            raise BadInput(f"{backbone} has patches of {patch} pixels; set size to a multiple, not {size}")
        limits.check(run.tuner, starts=run.start is not None, depth=shape.get("depth"), size=size)
        limits.check_views(run.input.views, run.input.test_zoom, size)
    else:
        positions, depth = positions_of(row["family"], shape), depth_of(shape)
        told = {"family": row["family"], "depth": depth, "backbone": backbone}
        limits.check_text(run.tuner, getattr(run.input, "max_length", 0), positions, **told)


def check_shown(run: Run, row: dict, where: str) -> None:
    """Raise BadInput if the input of a run omits part of a text, or shows a pair or options that it lacks."""
    kind, form = run.input.name, form_of(row)
    if has_tags(row) and (kind, run.head.name) != ("plain", "predictor"):
        raise BadInput(
            f"{where} words with tags take input plain and head predictor, not {kind} and {run.head.name}"
        )
    if form == "mcc" and kind not in ("formatted", "options"):
        allowed = "formatted, options"
        raise BadInput(f"{where} input {kind} shows no options, which its texts have; allowed: {allowed}")
    if kind == "options" and form != "mcc":
        raise BadInput(f"{where} input options is for texts with options, which its texts do not have")
    if (kind == "windows") != has_passages(row):
        its = "has passages with answers; allowed: windows" if has_passages(row) else "has none"
        raise BadInput(f"{where} input {kind} does not suit a data set that {its}")
    if kind in ("plain", "pooled", "tfidf", "options", "windows"):
        return
    shown, place = run.input.template, f"{where} template"
    paired = not is_table(row) or "pair" in columns_of(row)
    pieces(shown, paired=paired, options=kind == "formatted", where=place)
    part = {"ssc": "text", "spc": "pair", "mcc": "choices"}[form]
    if f"{{{part}}}" not in shown:
        raise BadInput(f"{place} '{shown}' has no {{{part}}}, which its texts have; name it there")


def check_letters(run: Run, words: Path | None, where: str) -> None:
    """Raise BadInput if a template shows more options than its language has letters for.

    words: the file of a verbalizer, with a line for each class. Without one, the job counts the classes.
    """
    shown = run.input.template
    if not has_choices(shown):
        return
    with said_of(f"{where} template '{shown}':"):
        letters_of(run.input.language, len(read_words(words)) - 1 if words else 0, "the classes")


def check_start(config: dict, point: Point, find: Callable[[Point], Resolved] | None = None) -> None:
    """Raise BadInput if a run cannot begin from the weights that its start writes."""
    find = find or partial(resolved, config)
    start = start_of(config, point)
    if not start:
        return
    run, first = find(point).run, find(start).run
    place = f"method '{point.method}' starts from {start.path}, which"
    if start.backbone != point.backbone:
        raise BadInput(f"{place} has another backbone than {point.backbone}")
    fresh = (run.start or {}).get("head") == "fresh"
    if "joins" in dataset_row(config, start.dataset) and not fresh:
        raise BadInput(f"{place} has a head for each of joined sets; state head: fresh in start")
    if not fresh and loaded(run) != loaded(first):
        raise BadInput(f"{place} has another head; head, predictor, norm and tied decide what is loaded")
    alone = {"prefix", "lora"} & {run.tuner.name, first.tuner.name}
    if (alone or run.input.reads == "image") and first.tuner.name not in run.tuner.goes_on:
        going = known(run.tuner.goes_on)
        raise BadInput(f"{place} has the tuner {first.tuner.name}; {run.tuner.name} goes on from {going}")
    if of(run, "length") != of(first, "length"):
        raise BadInput(f"{place} has prompts of another length")
    for key in ("layers", "rank"):
        if of(run, key) != of(first, key):
            raise BadInput(f"{place} has {key} {of(first, key)}, not {of(run, key)}; they must be alike")
    if of(run, "prompt_scale") != of(first, "prompt_scale"):
        raise BadInput(f"{place} has no soft prompt of this scale; tuner and prompt_scale must be alike")
    chain = [start, *starts_of(config, start)]
    tuned = any(find(each).run.tuner.name == "full" for each in chain)
    if tuned and not of(first, "keep"):
        raise BadInput(f"{place} keeps its head only; {keeping(start.method)}")


def of(run: Run, key: str):
    """A setting of the tuner of a run, or None if the tuner lacks it."""
    return getattr(run.tuner, key, None)


def loaded(run: Run) -> tuple:
    """What two heads must have in common for one to be loaded into the other."""
    if run.head.name == "verbalizer":
        return (run.head.name, run.head.tied)
    norm = getattr(run.head, "norm", None)
    return (run.head.name, run.head.predictor.name, norm is None or norm.name == "none")


def check_adapter(run: Run, shape: dict, folder: Path, where: str) -> None:
    """Raise BadInput if a run cannot begin from an adapter: it is missing, or of another kind or shape.

    The widths are compared if both are stated.
    """
    if run.tuner.name not in KINDS:
        raise BadInput(f"{where} start.folder is for tuner: {' or '.join(KINDS)}, not {run.tuner.name}")
    with said_of(where):
        width = shape.get("hidden_size", shape.get("d_model"))
        stated(folder, tuner=run.tuner.name, length=run.tuner.length, width=width)


def shape_of(config: dict, row: dict, root: str | Path) -> dict:
    """The shape of a backbone as its recipe or its config.json states; empty if it has neither."""
    if "recipe" in row:
        return config["pretraining"][row["recipe"]]["shape"]
    stated = stated_shape(Path(root, row["path"], "config.json")) if "path" in row else {}
    return {**stated, **row.get("random", {})}


@cache
def stated_shape(file: Path) -> dict:
    """The content of a config.json of transformers or timm; empty if unreadable, which loading reports."""
    try:
        stated = read_json(file)
        return keyed(stated.get("model_args", stated), file)
    except BadInput:
        return {}


def depth_of(shape: dict) -> int | None:
    """The layers of a backbone for texts, of a T5 those of its encoder; None if not known yet."""
    return shape.get("num_hidden_layers", shape.get("num_layers"))


def positions_of(family: str, shape: dict) -> float:
    """The most tokens that an input may have, as `model.backbones` counts; infinite if not known yet."""
    most, padding = shape.get("max_position_embeddings"), shape.get("pad_token_id", 1)
    absolute = shape.get("position_biased_input", True)
    if family not in MASKED or not absolute or not type(most) is type(padding) is int:
        return inf
    return most - padding - 1 if family == "roberta" else most
