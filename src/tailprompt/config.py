"""The configuration: YAML files merged into one dictionary, refused where it says what nobody reads.

The Snakefile and the `tailprompt` command both read it here. A later file wins over an earlier one, key by
key; a list is replaced whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tailprompt import blocks, plan
from tailprompt.errors import BadInput, known

SHARED = ("config/backbones.yaml", "config/datasets.yaml", "config/methods.yaml")
SCALE = "config/paper.yaml"  # the scale where none is named
SCHEMAS = "workflow/schemas"


def load(given: dict, name: str = "the command line", root: str | Path = ".") -> dict:
    """The whole configuration below `root` with `given` (a scale's file and single values) on top, checked.

    name: what messages call the place that `given` came from.
    """
    layers = [(file, read(Path(root, file))) for file in (*SHARED, *papers(root))]
    if "scale" not in given:
        layers.append((SCALE, read(Path(root, SCALE))))
    layers.append((name, given))
    config: dict = {}
    for _, layer in layers:
        config = merge(config, layer)
    check(config, layers, str(Path(root, SCHEMAS)))
    return config


def papers(root: str | Path) -> list[str]:
    """The papers' files, by name."""
    return [f"config/papers/{file.name}" for file in sorted(Path(root, "config/papers").glob("*.yaml"))]


def read(path: str | Path) -> dict:
    """One YAML file; raises BadInput where it is missing, not YAML, or not a mapping."""
    try:
        content = yaml.load(Path(path).read_text("utf-8"), OneOfEach)
    except OSError as error:
        raise BadInput(f"config file {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"config file {path}: {' '.join(str(error).split())}") from None
    if not isinstance(content or {}, dict):
        raise BadInput(f"config file {path}: must hold keys and values, not a {type(content).__name__}")
    return content or {}


class OneOfEach(yaml.SafeLoader):
    """A loader that refuses a key given twice, of which YAML would silently keep the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise yaml.YAMLError(
                f"key '{twice[0]}' is given twice, the second time near line {node.start_mark.line + 1}"
            )
        return super().construct_mapping(node, deep)


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
    return yaml.safe_load(value) if isinstance(value, str) else value


def check(config: dict, layers: Iterable[tuple[str, dict]], schemas: str) -> None:
    """Raise BadInput, one sentence with file and key, at the first thing the schema refuses."""
    error = best_match(validator("config", schemas).iter_errors(config))
    if error:
        raise BadInput(f"{origin(layers, error)}: {sentence(error)}")


def check_files(config: dict, root: str | Path = ".") -> None:
    """Raise BadInput at the first data set of the scale whose own file (shipped, or the user's) is absent."""
    for name in dict.fromkeys(plan.parse(dataset)[0] for dataset in blocks.all_datasets(config)):
        row = config["datasets"][name]
        entries = row.get("files", {"all": row.get("path", {})}).values()
        paths = [entry if isinstance(entry, str) else entry.get("path") for entry in entries]
        absent = [path for path in paths if path and not Path(root, path).is_file()]
        if absent:
            raise BadInput(f"data set '{name}': there is no file {absent[0]}; correct its path in its row")


def check_settings(
    config: dict, points: Iterable[plan.Point], root: str | Path = "."
) -> dict[plan.Point, dict]:
    """The settings of each point; raises BadInput at the first whose settings the schema refuses."""
    rules = validator("settings", str(Path(root, SCHEMAS)))
    found = {}
    for point in points:
        found[point] = plan.settings(config, point)
        error = best_match(rules.iter_errors(found[point]))
        if error:
            raise BadInput(f"{point.method} on {point.dataset} under {point.protocol}: {sentence(error)}")
    return found


@cache
def validator(name: str, folder: str) -> Draft202012Validator:
    """The schema `name` of a folder, able to refer to its neighbours."""
    schemas = {file.name: read(file) for file in sorted(Path(folder).glob("*.schema.yaml"))}
    resources = [(file, Resource.from_contents(schema, DRAFT202012)) for file, schema in schemas.items()]
    return Draft202012Validator(schemas[f"{name}.schema.yaml"], registry=Registry().with_resources(resources))


def origin(layers: Iterable[tuple[str, dict]], error: ValidationError) -> str:
    """The last file that says something at the place of an error."""
    path = [*error.absolute_path, *unknown(error)[:1]]
    names = [name for name, layer in layers if depth(layer, path) == len(path)]
    return names[-1] if names else "the configuration"


def depth(layer, path: list) -> int:
    """How many steps of `path` exist in a layer."""
    for step, key in enumerate(path):
        try:
            layer = layer[key]
        except (KeyError, IndexError, TypeError):
            return step
    return len(path)


def unknown(error: ValidationError) -> list[str]:
    """The keys that an `additionalProperties` error refuses."""
    if error.validator != "additionalProperties":
        return []
    return [key for key in error.instance if key not in error.schema.get("properties", {})]


def sentence(error: ValidationError) -> str:
    """What is wrong and what is allowed, in one sentence."""
    place = ".".join(map(str, error.absolute_path)) or "the top level"
    if error.validator == "additionalProperties":
        keys = ", ".join(f"'{key}'" for key in unknown(error))
        return f"unknown key {keys} in {place}; known: {known(error.schema['properties'])}"
    if error.validator == "enum":
        return f"{place} is {error.instance!r}; allowed: {', '.join(map(str, error.validator_value))}"
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{place} lacks {', '.join(missing)}"
    if error.validator in ("anyOf", "oneOf"):
        ways = [" and ".join(way["required"]) for way in error.validator_value]
        return f"{place} needs {'one of' if error.validator == 'oneOf' else 'some of'} {', '.join(ways)}"
    if error.validator == "type":
        hint = "; write 1.0e-5, not 1e-5" if number(error.instance) else ""
        return f"{place} is {error.instance!r}, not {' or '.join(words(error.validator_value))}{hint}"
    return f"{place}: {error.message}"


def words(types: str | list[str]) -> list[str]:
    """JSON's names of types, in the words of YAML's readers."""
    plain = {"object": "keys with values", "array": "a list", "string": "a word", "boolean": "true or false"}
    return [plain.get(name, name) for name in ([types] if isinstance(types, str) else types)]


def number(value) -> bool:
    """Whether a word is a number that YAML 1.1 does not read as one."""
    try:
        return isinstance(value, str) and float(value) is not None
    except ValueError:
        return False
