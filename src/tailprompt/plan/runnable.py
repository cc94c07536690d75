"""What a scale asks for and cannot be run is refused before the first run begins."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path

from jsonschema.exceptions import best_match

from tailprompt.errors import BadInput, known
from tailprompt.files import keyed, read_json, reading
from tailprompt.inputs.templates import has_choices, letters_of, pieces, template_named, template_of
from tailprompt.model import limits as tuning
from tailprompt.plan import blocks
from tailprompt.plan import settings as plan
from tailprompt.plan.points import Point, parse
from tailprompt.plan.rows import columns_of, dataset_row, form_of, is_table
from tailprompt.plan.schemas import SCHEMAS, sentence, validator
from tailprompt.plan.starts import keeping, start_of, starts_of

MASKED = ("bert", "roberta")  # families that have a masked-language-model head
READERS = {  # families that take an input
    "plain": MASKED,
    "prompted": MASKED,
    "formatted": (*MASKED, "t5"),
    "pixels": ("vit",),
}
GOES_ON = {  # tuner of images -> tuners whose weights it can begin from
    "full": {"full", "frozen"},
    "frozen": {"frozen"},
    "prompts": {"prompts"},
    "prompts_shallow": {"prompts_shallow"},
    "group_prompts": {"prompts", "group_prompts"},
}
FOLDERS = "annotated backbones benchmarks data figures images logs pretraining runs tables".split()


def check_files(config: dict, root: str | Path = ".") -> None:
    """Raise BadInput where data_dir, a corpus, or a file or folder of a data set of the scale is absent.

    So too where a file lies in the way of the results.
    """
    scale = f"results/{config['scale']}"
    for folder in ("results", "results/raw", scale, *(f"{scale}/{name}" for name in FOLDERS)):
        if Path(root, folder).is_file():
            raise BadInput(f"{folder} is a file, where a folder of results is wanted; move it away")
    data_dir = config.get("data_dir")
    if data_dir and not Path(root, data_dir).is_dir():
        raise BadInput(f"data_dir {data_dir} is no folder; correct it, or set data_dir: null to download")
    for name, path in (config.get("corpora") or {}).items():
        if path and not Path(root, path).exists():
            raise BadInput(f"corpora.{name}: there is no {path}; correct the path")
    for name in dict.fromkeys(parse(dataset)[0] for dataset in blocks.all_datasets(config)):
        row = dataset_row(config, name)
        entries = row.get("files", {"all": row.get("path", {})}).values()
        paths = [entry if isinstance(entry, str) else entry.get("path") for entry in entries]
        paths += [row.get("verbalizer"), row.get("lexicon")]
        absent = [path for path in paths if path and not Path(root, path).is_file()]
        if absent:
            raise BadInput(f"data set '{name}': there is no file {absent[0]}; correct its path in its row")
        folders = {"root": row.get("root"), "model.folder": row.get("model", {}).get("folder")}
        for key, folder in folders.items():
            if folder and not Path(root, folder).is_dir():
                raise BadInput(
                    f"data set '{name}': there is no folder {folder}; correct its {key} in its row"
                )


def check_settings(config: dict, points: Iterable[Point], root: str | Path = ".") -> dict[Point, dict]:
    """The settings of each point; raises BadInput at the first that cannot be used."""
    rules = validator("run", str(Path(root, SCHEMAS)))
    found, checked = {}, set()
    for point in points:
        found[point] = plan.settings(config, point)
        if (cell := replace(point, seed=0)) not in checked:  # seeds differ in nothing that could be wrong
            check_run(config, point, found[point], rules, root)
            checked.add(cell)
    return found


def check_run(config: dict, point: Point, settings: dict, rules, root: str | Path) -> None:
    """Raise BadInput where a run's settings, backbone, words or start cannot be used."""
    where = f"{point.method} on {point.dataset} under {point.protocol}:"
    error = best_match(rules.iter_errors(settings))
    if error:
        raise BadInput(f"{where} {sentence(error)}")
    row, kind = config["backbones"][point.backbone], settings["input"]
    check_backbone(row, point.backbone, kind, root, where)
    shape = shape_of(config, row, root)
    if kind == "pixels":
        check_image_model(settings, shape, row, where)
    else:
        check_length(settings, positions_of(row["family"], shape), f"{where} backbone '{point.backbone}'")
        check_shown(settings, dataset_row(config, point.dataset), where)
    words = settings.get("verbalizer")
    if words and not Path(root, words).is_file():
        raise BadInput(f"{where} there is no file {words}; correct the path of the verbalizer")
    if kind == "formatted":
        check_letters(settings, Path(root, words) if words else None, where)
    check_start(config, point)
    if folder := (settings["start"] or {}).get("folder"):
        check_adapter(settings, shape, Path(root, folder), where)


def check_backbone(row: dict, name: str, kind: str, root: str | Path, where: str) -> None:
    """Raise BadInput where a backbone does not take a run's input, or its own folder is absent."""
    if row["family"] not in READERS[kind]:
        raise BadInput(
            f"{where} backbone '{name}' is of the family {row['family']}; "
            f"it needs one of {known(READERS[kind])}"
        )
    if "path" in row and not Path(root, row["path"]).is_dir():
        raise BadInput(f"backbone '{name}': there is no folder {row['path']}; correct its path in its row")


def check_image_model(settings: dict, shape: dict, row: dict, where: str) -> None:
    """Raise BadInput where a ViT of this shape cannot have the prompts or views of a run."""
    size = row.get("size", shape.get("img_size"))
    try:
        tuning.check(settings, depth=shape.get("depth"), size=size)
        tuning.check_views(settings["views"], settings["test_zoom"], size)
    except BadInput as wrong:
        raise BadInput(f"{where} {wrong}") from None


def check_length(settings: dict, positions: float, where: str) -> None:
    """Raise BadInput where texts, and the soft prompt before them, may have more tokens than positions."""
    told = {key: settings[key] for key in ("max_length", "soft_length") if key in settings}
    if sum(told.values()) > positions:
        wanted = " and ".join(f"{key} {value}" for key, value in told.items())
        raise BadInput(f"{where} has {positions} positions, fewer than {wanted}; lower {' or '.join(told)}")


def check_shown(settings: dict, row: dict, where: str) -> None:
    """Raise BadInput where a run's input shows not all of a text, or what it does not have: pair, options."""
    kind, form = settings["input"], form_of(row)
    if form == "mcc" and kind != "formatted":
        raise BadInput(f"{where} input {kind} shows no options, which its texts have; allowed: formatted")
    if kind == "plain":
        return
    shown, place = template_of(settings), f"{where} template"
    if kind == "formatted":
        shown, place = pattern_in(settings, where), f"{where} pattern"
    paired = not is_table(row) or "pair" in columns_of(row)
    pieces(shown, paired=paired, options=kind == "formatted", where=place)
    part = {"ssc": "text", "spc": "pair", "mcc": "choices"}[form]
    if f"{{{part}}}" not in shown:
        raise BadInput(f"{place} '{shown}' has no {{{part}}}, which its texts have; name it there")


def check_letters(settings: dict, words: Path | None, where: str) -> None:
    """Raise BadInput where a pattern shows options in a language that has no letters for so many.

    words: a verbalizer's file, with a line for each class; where there is none, the job counts the classes.
    """
    shown = pattern_in(settings, where)
    if not has_choices(shown):
        return
    try:
        letters_of(settings["language"], classes_in(words) if words else 0, "the classes")
    except BadInput as wrong:
        raise BadInput(f"{where} pattern '{shown}': {wrong}") from None


def pattern_in(settings: dict, where: str) -> str:
    """A run's pattern in its language and for its form; raises BadInput where there is none."""
    try:
        return template_named(settings["pattern"], settings["language"], settings["form"])
    except BadInput as wrong:
        raise BadInput(f"{where} {wrong}") from None


def classes_in(words: Path) -> int:
    """How many classes a verbalizer's file has."""
    with reading(words), open(words, encoding="utf-8-sig", newline="") as file:
        return sum(1 for cells in csv.reader(file) if cells) - 1


def check_start(config: dict, point: Point) -> None:
    """Raise BadInput where a run cannot go on from the weights that its start keeps."""
    start = start_of(config, point)
    if not start:
        return
    ours, theirs = plan.settings(config, point), plan.settings(config, start)
    place = f"method '{point.method}' starts from {start.path}, which"
    if start.backbone != point.backbone:
        raise BadInput(f"{place} has another backbone than {point.backbone}")
    if loaded(ours) != loaded(theirs):
        raise BadInput(f"{place} has another head; head, predictor, norm and tied decide what is loaded")
    if ours["input"] == "pixels" and theirs["tuner"] not in GOES_ON[ours["tuner"]]:
        going = known(GOES_ON[ours["tuner"]])
        raise BadInput(f"{place} has the tuner {theirs['tuner']}; {ours['tuner']} goes on from {going}")
    if any(ours.get(key) != theirs.get(key) for key in ("length", "soft_length")):
        raise BadInput(f"{place} has prompts of another length")
    if ours.get("soft_scale") != theirs.get("soft_scale"):
        raise BadInput(f"{place} has no soft prompt of this scale; tuner and soft_scale must be alike")
    chain = [start, *starts_of(config, start)]
    if any(plan.settings(config, each)["tuner"] == "full" for each in chain) and not theirs["keep"]:
        raise BadInput(f"{place} keeps its head only; {keeping(start.method)}")


def loaded(settings: dict) -> tuple:
    """What must be alike for one head to be loaded into another."""
    rest = (settings["tied"],) if settings["head"] == "verbalizer" else (settings["predictor"],)
    return (settings["head"], *rest, settings.get("norm", "none") == "none")


def check_adapter(settings: dict, shape: dict, folder: Path, where: str) -> None:
    """Raise BadInput where a run cannot begin from an adapter: there is none, or of another kind or shape.

    Its width is compared where both say theirs.
    """
    if settings["tuner"] != "soft_prompt":
        raise BadInput(f"{where} start.folder is for tuner: soft_prompt, not {settings['tuner']}")
    for file in ("adapter_config.json", "adapter_model.safetensors"):
        if not (folder / file).is_file():
            raise BadInput(f"{where} {folder} has no {file}; name a folder in peft's format")
    stated = read_json(folder / "adapter_config.json", "peft_type", "num_virtual_tokens")
    wanted = {"peft_type": "PROMPT_TUNING", "num_virtual_tokens": settings["soft_length"]}
    width = shape.get("hidden_size", shape.get("d_model"))
    if width and stated.get("token_dim"):
        wanted["token_dim"] = width
    for key, value in wanted.items():
        if stated[key] != value:
            raise BadInput(
                f"{where} {folder} has {key} {stated[key]!r}, not {value!r}; a run begins from a prompt of "
                "peft's PROMPT_TUNING, as long as soft_length and as wide as its backbone"
            )


def shape_of(config: dict, row: dict, root: str | Path) -> dict:
    """What a backbone's recipe, or a config.json here, says of its shape; nothing where there is neither."""
    if "recipe" in row:
        return config["pretraining"][row["recipe"]]["shape"]
    stated = stated_shape(Path(root, row["path"], "config.json")) if "path" in row else {}
    return {**stated, **row.get("random", {})}


@cache
def stated_shape(file: Path) -> dict:
    """What a config.json of transformers or timm says; nothing of one that cannot be read: loading tells."""
    try:
        stated = read_json(file)
        return keyed(stated.get("model_args", stated), file)
    except BadInput:
        return {}


def positions_of(family: str, shape: dict) -> float:
    """The most tokens of an input, as `backbones` counts them; infinite where they are not known yet."""
    most, padding = shape.get("max_position_embeddings"), shape.get("pad_token_id", 1)
    if family not in MASKED or not type(most) is type(padding) is int:
        return inf
    return most - padding - 1 if family == "roberta" else most
