"""The configuration: YAML files merged into one dictionary, refused where it says what nobody reads.

The Snakefile and the `tailprompt` command both read it here. A later file wins over an earlier one, key by
key; a list is replaced whole.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, reduce
from math import inf
from pathlib import Path

import yaml
from jsonschema import ValidationError
from jsonschema.exceptions import best_match

from tailprompt import blocks, plan, quotas, recipes, tuning
from tailprompt.errors import BadInput, known
from tailprompt.files import keyed, read_json, reading
from tailprompt.patterns import has_choices, letters_of, pattern_of
from tailprompt.schemas import read, sentence, unknown, validator
from tailprompt.template import pieces, template_of

SHARED = (
    "config/backbones.yaml",
    "config/pretraining.yaml",
    "config/datasets.yaml",
    "config/methods.yaml",
)
SCALE = "config/paper.yaml"  # where no file is given
SCHEMAS = "workflow/schemas"
MASKED = ("bert", "roberta")  # families that have a masked-language-model head
READERS = {  # families that take an input
    "plain": MASKED,
    "prompted": MASKED,
    "formatted": (*MASKED, "t5"),
    "pixels": ("vit",),
}
ROWS = {  # where the row lies that a key names
    "backbone": "backbones",
    "dataset": "datasets",
    "datasets": "datasets",
    "method": "methods",
    "methods": "methods",
    "protocol": "protocols",
    "recipe": "pretraining",
    "sets": "sets",
    "than": "methods",
    "trained_on": "datasets",
}
TAKERS = {  # of the names that a scale gives
    "protocols": "table, figure or start",
    "sets": "table, figure or start",
    "corpora": "data set or recipe",
}


def load(files: Iterable[str | Path] = (), values: dict | None = None, root: str | Path = ".") -> dict:
    """The whole configuration below `root` with `files` (a scale's) and single `values` on top, checked."""
    given, line = [(str(file), read(file)) for file in files], [("--config", values)] if values else []
    if given and not any("scale" in layer for _, layer in given + line):
        raise BadInput(f"{given[-1][0]} names no scale; write scale: NAME in it, or give {SCALE} before it")
    own = [*SHARED, *papers(root), *([] if given else [SCALE])]
    layers = [*((file, read(Path(root, file))) for file in own), *given, *line]
    config = without_dropped(reduce(merge, (layer for _, layer in layers)))
    check(config, layers, str(Path(root, SCHEMAS)))
    check_names(config, layers)
    check_claims(config, layers)
    recipes.check(config["pretraining"])
    quotas.check(config["datasets"])
    return config


def without_dropped(config: dict) -> dict:
    """The configuration without the papers whose `make` a later file sets to null."""
    make = config.get("make")
    if not isinstance(make, dict):
        return config
    return {**config, "make": {paper: limits for paper, limits in make.items() if limits is not None}}


def papers(root: str | Path) -> list[str]:
    """The papers' files, by name."""
    return [f"config/papers/{file.name}" for file in sorted(Path(root, "config/papers").glob("*.yaml"))]


def merge(below: dict, above: dict) -> dict:
    """`above` over `below`, deeply; neither is changed."""
    both = {
        key: merge(below[key], above[key])
        for key in below.keys() & above.keys()
        if isinstance(below[key], dict) and isinstance(above[key], dict)
    }
    return {**below, **above, **both}


def typed(value):
    """A value of Snakemake's --config with the types of YAML: inside braces Snakemake reads words only."""
    if isinstance(value, dict):
        return {key: typed(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [typed(inside) for inside in value]
    if not isinstance(value, str):
        return value
    try:
        found = yaml.safe_load(value)
    except yaml.YAMLError:
        return value
    return found if found is None or isinstance(found, int | float) else value


def check(config: dict, layers: Iterable[tuple[str, dict]], schemas: str) -> None:
    """Raise BadInput, one sentence with file and key, at the first thing the schema refuses."""
    error = best_match(validator("config", schemas).iter_errors(config))
    if error:
        where = origin(layers, [*error.absolute_path, *unknown(error)[:1]])
        raise BadInput(f"{where}: {sentence(error)}{beside(config, error)}")


def check_names(config: dict, layers: Iterable[tuple[str, dict]]) -> None:
    """Raise BadInput at the first name that no row has, and at a name or method that nothing takes."""
    made = [*config["datasets"].values(), *config["pretraining"].values()]
    corpora = {row["corpus"] for row in made if "corpus" in row}
    taken: dict[str, set[str]] = {"protocols": set(), "sets": set(), "corpora": corpora}
    for path, names, registry in references(config):
        taken.setdefault(registry, set()).update(names)
        rows = set(reduce(lambda part, key: part.get(key, {}), registry.split(":"), config))
        rows -= plan.DEFAULTS if registry == "methods" else set()
        for name in names:
            if name not in rows:
                place = f"{origin(layers, [*path, name])}: '{name}' in {'.'.join(map(str, path))}"
                raise BadInput(f"{place} is none of the {registry.replace(':', '.')}; known: {known(rows)}")
    for name, row in config["protocols"].items():
        listed = methods_listed(config, name)
        for method in row.get("methods", []):
            if not {method, plan.parse(method)[0]} & listed:
                place = f"{origin(layers, ['protocols', name, 'methods'])}: '{method}' in protocols.{name}"
                raise BadInput(f"{place}.methods is in no table or figure of {name}; there: {known(listed)}")
    for registry, takers in TAKERS.items():
        for name in sorted(config.get(registry, {}).keys() - taken[registry]):
            place = f"{origin(layers, [registry, name])}: '{name}' in {registry}"
            raise BadInput(f"{place} is taken by no {takers}; taken: {known(taken[registry])}")


def check_claims(config: dict, layers: Iterable[tuple[str, dict]]) -> None:
    """Raise BadInput at the first claim of a method against itself."""
    for path, block in all_blocks(config):
        for name, claim in block.get("claims", {}).items():
            if claim["method"] == claim["than"]:
                place = f"{origin(layers, [*path, 'claims', name])}: claim '{name}' in {'.'.join(path)}"
                raise BadInput(f"{place} compares '{claim['method']}' with itself; name another in than")


def all_blocks(config: dict) -> Iterator[tuple[tuple[str, ...], dict]]:
    """(place, block) of every table and figure."""
    for paper, content in config["papers"].items():
        for what in ("tables", "figures"):
            for name, block in content.get(what, {}).items():
                yield ("papers", paper, what, name), block


def methods_listed(config: dict, protocol: str) -> set[str]:
    """The methods that tables, figures and claims under a protocol list."""
    here = [block for _, block in all_blocks(config) if block["protocol"] == protocol]
    claims = [claim for block in here for claim in block.get("claims", {}).values()]
    pairs = {claim[key] for claim in claims for key in ("method", "than")}
    return pairs.union(*(block.get("methods", []) for block in here))


def references(config: dict) -> Iterator[tuple[tuple, list[str], str]]:
    """(place, names there, where their rows are) wherever the configuration names rows."""
    yield ("make",), list(config["make"]), "papers"
    for paper, limits in config["make"].items():
        for what, names in limits.items():
            yield ("make", paper, what), names, f"papers:{paper}:{what}"
    for name, row in config["backbones"].items():
        yield from named_in({key: row[key] for key in row if key == "recipe"}, "backbones", name)
    for name, row in config["datasets"].items():
        yield from named_in({key: row[key] for key in row if key == "trained_on"}, "datasets", name)
    for name, row in config["languages"].items():
        yield ("languages", name, "prompts"), list(row.get("prompts", {}).values()), "datasets"
    for name, row in config["pretraining"].items():
        if "start" in row:
            yield ("pretraining", name, "start"), [row["start"]], "pretraining"
    for name, row in config["methods"].items():
        yield from named_in(row.get("start") or {}, "methods", name, "start")
    for name, row in config["protocols"].items():
        yield ("protocols", name, "backbones"), list(row["backbones"].values()), "backbones"
        yield from named_in(row, "protocols", name)
        yield ("protocols", name, "cells"), list(row.get("cells", {})), "datasets"
        for dataset, cells in row.get("cells", {}).items():
            yield ("protocols", name, "cells", dataset), list(cells), "methods"
    for name, datasets in config["sets"].items():
        yield ("sets", name), [plan.parse(dataset)[0] for dataset in datasets], "datasets"
    for path, block in all_blocks(config):
        yield from named_in(block, *path)
        yield (*path, "backbones"), block.get("backbones", []), "backbones"
        yield (*path, "choose", "of"), list(block.get("choose", {}).get("of", {})), "methods"
        for claim, compared in block.get("claims", {}).items():
            yield from named_in(compared, *path, "claims", claim)


def named_in(block: dict, *path) -> Iterator[tuple[tuple, list[str], str]]:
    """`references` of one block, by the key a name stands at."""
    for key in ROWS.keys() & block.keys():
        names = [block[key]] if isinstance(block[key], str) else block[key]
        bases = list(names) if isinstance(names, dict) else [plan.parse(name)[0] for name in names]
        yield (*path, key), bases, ROWS[key]


def check_files(config: dict, root: str | Path = ".") -> None:
    """Raise BadInput where data_dir, a corpus, or a file or folder of a data set of the scale is absent."""
    data_dir = config.get("data_dir")
    if data_dir and not Path(root, data_dir).is_dir():
        raise BadInput(f"data_dir {data_dir} is no folder; correct it, or set data_dir: null to download")
    for name, path in (config.get("corpora") or {}).items():
        if path and not Path(root, path).exists():
            raise BadInput(f"corpora.{name}: there is no {path}; correct the path")
    for name in dict.fromkeys(plan.parse(dataset)[0] for dataset in blocks.all_datasets(config)):
        row = plan.dataset_row(config, name)
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


def check_settings(
    config: dict, points: Iterable[plan.Point], root: str | Path = "."
) -> dict[plan.Point, dict]:
    """The settings of each point; raises BadInput at the first that cannot be used."""
    rules = validator("run", str(Path(root, SCHEMAS)))
    found, checked = {}, set()
    for point in points:
        found[point] = plan.settings(config, point)
        if (cell := replace(point, seed=0)) not in checked:  # seeds differ in nothing that could be wrong
            check_run(config, point, found[point], rules, root)
            checked.add(cell)
    return found


def check_run(config: dict, point: plan.Point, settings: dict, rules, root: str | Path) -> None:
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
        check_shown(settings, plan.dataset_row(config, point.dataset), where)
    words = settings.get("verbalizer")
    if words and not Path(root, words).is_file():
        raise BadInput(f"{where} there is no file {words}; correct the path of the verbalizer")
    if kind == "formatted":
        check_letters(settings, Path(root, words) if words else None, where)
    plan.check_start(config, point)
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


def check_shown(settings: dict, row: dict, where: str) -> None:
    """Raise BadInput where a run's input shows not all of a text, or what it does not have: pair, options."""
    kind, form = settings["input"], plan.form_of(row)
    if form == "mcc" and kind != "formatted":
        raise BadInput(f"{where} input {kind} shows no options, which its texts have; allowed: formatted")
    if kind == "plain":
        return
    shown, place = template_of(settings), f"{where} template"
    if kind == "formatted":
        shown, place = pattern_in(settings, where), f"{where} pattern"
    paired = not plan.is_table(row) or "pair" in plan.columns_of(row)
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


def classes_in(words: Path) -> int:
    """How many classes a verbalizer's file has."""
    with reading(words), open(words, encoding="utf-8-sig", newline="") as file:
        return sum(1 for cells in csv.reader(file) if cells) - 1


def pattern_in(settings: dict, where: str) -> str:
    """A run's pattern in its language and for its form; raises BadInput where there is none."""
    try:
        return pattern_of(settings["pattern"], settings["language"], settings["form"])
    except BadInput as wrong:
        raise BadInput(f"{where} {wrong}") from None


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


def origin(layers: Iterable[tuple[str, dict]], path: list) -> str:
    """The last file that says something at a place."""
    found = max(reversed([*layers]), key=lambda layer: depth(layer[1], path))
    files = [layer for layer in layers if layer[0] != "--config"]
    return (found if depth(found[1], path) else files[-1])[0]


def beside(config: dict, error: ValidationError) -> str:
    """The names beside an incomplete row, whose own may be misspelt."""
    *above, name = error.absolute_path or [None]
    rows = reduce(lambda part, key: part[key], above, config)
    others = set(rows) - {name} if error.validator == "required" and isinstance(rows, dict) else ()
    return f"; beside it: {known(others)}" if name and others else ""


def depth(layer, path: list) -> int:
    """How many steps of `path` exist in a layer."""
    for step, key in enumerate(path):
        try:
            layer = layer[key]
        except (KeyError, IndexError, TypeError):
            return step
    return len(path)
