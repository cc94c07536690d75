"""The configuration: YAML files merged into one dictionary and checked; a key that nothing reads is refused.

The Snakefile and the `tailprompt` command both read it here. A later file overrides an earlier one key by
key. A list is replaced as a whole.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import reduce
from pathlib import Path

import yaml
from jsonschema import ValidationError
from jsonschema.exceptions import best_match

from tailprompt.data import quotas
from tailprompt.errors import BadInput, known
from tailprompt.plan.equal_numbers import as_before
from tailprompt.plan.home import at_home, found, homes
from tailprompt.plan.joins import check_joins
from tailprompt.plan.layers import merge, origin
from tailprompt.plan.references import check_claims, check_drawn, check_names, check_searches
from tailprompt.plan.revisions import pinned
from tailprompt.plan.schemas import SCHEMAS, read, sentence, unknown, validator
from tailprompt.pretraining import recipes
from tailprompt.seals import as_written

SHARED = ("config/backbones.yaml", "config/pretraining.yaml", "config/datasets.yaml", "config/methods.yaml")
SCALE = "config/paper.yaml"  # the default
# As Snakemake has it: the files of one option are merged, and the last of several options counts alone.
OPTION = ("--configfile", "--configfiles")
FILES = {"nargs": "+", "metavar": "FILE", "help": "the scale; of several files a later one wins"}
VALUES = {"nargs": "*", "metavar": "KEY=VALUE", "default": [], "help": "values that override the files"}

Layer = tuple[str, dict]  # a name that messages give, and what it holds


def load(
    files: Iterable[str | Path | Layer] = (), values: dict | None = None, root: str | Path = "."
) -> dict:
    """The checked configuration below `root`, overridden by `files` (of a scale) and then by single `values`.

    In the place of a file stands what a module is given.

    Raises BadInput, one sentence with file and key, at the first fault.
    """
    if sys.getfilesystemencoding() == "ascii":
        raise BadInput(
            "Python can name files and print in ASCII alone here; unset PYTHONUTF8, or set LC_ALL=C.UTF-8"
        )
    layers = layers_of(files, values, root)
    config = without_dropped(reduce(merge, (layer for _, layer in layers)))
    check(config, layers, str(Path(root, found(SCHEMAS, root))))
    check_names(config, layers)
    check_claims(config, layers)
    check_searches(config, layers)
    check_drawn(config, layers)
    check_joins(config, layers)
    recipes.check(config["pretraining"])
    quotas.check(config["datasets"])
    placed = config if homes(root) == [Path(root)] else at_home(config, root)
    return as_before(pinned(placed, Path(root)), Path(root))


def layers_of(
    files: Iterable[str | Path | Layer] = (), values: dict | None = None, root: str | Path = "."
) -> list[tuple[str, dict]]:
    """(file, content) of all layers of the configuration; a later one overrides an earlier one."""
    given = [file if isinstance(file, tuple) else (str(file), read_given(file)) for file in files]
    line = [("--config", values)] if values else []
    if given and not any("scale" in layer for _, layer in given + line):
        raise BadInput(f"{given[-1][0]} names no scale; write scale: NAME in it, or give {SCALE} before it")
    own = [*SHARED, *papers(root), *([] if given else [SCALE])]
    return [*((file, read(Path(root, found(file, root)))) for file in own), *given, *line]


def read_given(file: str | Path) -> dict:
    """The content of a file of a scale; raises BadInput if it says nothing, or is not what a search wrote."""
    if Path(file).is_file() and not as_written(Path(file)):
        raise BadInput(
            f"config file {file}: not what its search wrote (SHA-256); it was damaged or edited. Delete it, "
            "and snakemake without it writes it anew; for choices of your own, edit a copy in another folder"
        )
    content = read(file)
    if not content:
        raise BadInput(f"config file {file}: is empty; it needs keys and values, as scale: NAME")
    return content


def without_dropped(config: dict) -> dict:
    """The configuration without the papers whose `make` is null in a later file."""
    make = config.get("make")
    if not isinstance(make, dict):
        return config
    return {**config, "make": {paper: limits for paper, limits in make.items() if limits is not None}}


def papers(root: str | Path) -> list[str]:
    """The files of the papers, in the order of their names."""
    files = (file for home in homes(root) for file in Path(home, "config/papers").glob("*.yaml"))
    return [f"config/papers/{name}" for name in sorted({file.name for file in files})]


def values_of(entries: list[str]) -> dict:
    """What KEY=VALUE of --config say, as Snakemake reads them; raises BadInput where it would not."""
    from snakemake.cli import parse_config  # slow to import, and seldom needed

    try:
        return typed(parse_config(entries))
    except (ValueError, AssertionError):
        raise BadInput(f"--config takes KEY=VALUE, as train=false, not {' '.join(entries)}") from None


def typed(value):
    """A value of Snakemake's --config with YAML's types: Snakemake reads all values in braces as words."""
    if isinstance(value, dict):
        return {key: typed(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [typed(inside) for inside in value]
    if not isinstance(value, str):
        return value
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError:
        return value
    return parsed if parsed is None or isinstance(parsed, int | float) else value


def check(config: dict, layers: Iterable[tuple[str, dict]], schemas: str) -> None:
    """Raise BadInput, one sentence with file and key, for what the schema refuses."""
    error = best_match(validator("config", schemas).iter_errors(config))
    if error:
        where = origin(layers, [*error.absolute_path, *unknown(error)[:1]])
        raise BadInput(f"{where}: {sentence(error)}{beside(config, error)}")


def beside(config: dict, error: ValidationError) -> str:
    """The names of the rows beside an incomplete one, whose own name may be misspelt."""
    *above, name = error.absolute_path or [None]
    rows = reduce(lambda part, key: part[key], above, config)
    others = set(rows) - {name} if error.validator == "required" and isinstance(rows, dict) else ()
    return f"; beside it: {known(others)}" if name and others else ""
