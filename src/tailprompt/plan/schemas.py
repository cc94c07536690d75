"""YAML files, the schemas that they must satisfy, and one sentence about what is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tailprompt.components.declare import every
from tailprompt.components.resolve import property_schema
from tailprompt.components.run import Run
from tailprompt.errors import BadInput, known
from tailprompt.pretraining import shapes
from tailprompt.tasks import metrics

SCHEMAS = "workflow/schemas"  # in the project's folder


def read(path: str | Path) -> dict:
    """The content of a YAML file; raises BadInput if it is missing, not YAML, or not a mapping."""
    try:
        content = yaml.load(Path(path).read_text("utf-8"), OneOfEach)
    except OSError as error:
        raise BadInput(f"config file {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"config file {path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a 31st of June is a ValueError
        raise BadInput(f"config file {path}: {' '.join(str(error).split())}") from None
    if not isinstance(content or {}, dict):
        raise BadInput(f"config file {path}: must hold keys and values, not a {type(content).__name__}")
    return content or {}


class OneOfEach(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """A loader that refuses a key given twice; YAML would silently keep the last."""

    def construct_mapping(self, node, deep=False):
        seen: list = []
        for place, _ in node.value:
            key = self.construct_object(place, deep=True)
            if key in seen:
                line = place.start_mark.line + 1
                raise yaml.YAMLError(f"key '{key}' is given twice, the second time in line {line}")
            seen.append(key)
        return super().construct_mapping(node, deep)


@cache
def validator(name: str, folder: str) -> Draft202012Validator:
    """The validator of schema `name` in a folder, which may refer to the other schemas there."""
    schemas = {file.name: read(file) for file in sorted(Path(folder).glob("*.schema.yaml"))}
    for schema in schemas.values():
        del schema["$schema"]  # it would select jsonschema's validator instead of Strict
    schemas["settings.schema.yaml"] = settings_schema()
    schemas["shapes.schema.yaml"] = shapes.schema()
    schemas["config.schema.yaml"]["$defs"]["metric"] = metrics.schema()
    resources = [(file, Resource.from_contents(schema, DRAFT202012)) for file, schema in schemas.items()]
    return Strict(schemas[f"{name}.schema.yaml"], registry=Registry().with_resources(resources))


def settings_schema() -> dict:
    """The schema of settings, made from the declarations of the components.

    `method` says what the row of a method may hold, and `shared` what a protocol, backbone or data set may.
    """
    properties = property_schema()
    of_data = {(slot, each.name) for slot, _, each in every(Run) if each.of_data}
    data = f"{', '.join(sorted({key for _, key in of_data}))} stands in a data set's row"
    in_place = f"{data}, features and vectors follow from tables and figures"
    row = {
        "title": {"type": "string"},
        "backbone": {
            "type": "string",
            "pattern": "^[a-z0-9-]+$",
            "description": "the end of a key of the protocol's backbones, as lm for en-lm, or a backbone",
        },
    }
    named_so = sorted({name for slot, key in of_data for name in (key, f"{slot}.{key}")})
    elsewhere = [*named_so, "features", "vectors"]
    method = {"not": {"enum": elsewhere}, "description": f"a setting of a method: {in_place}"}
    shared = {
        "not": {"enum": [*row, "start", *elsewhere]},
        "description": "a setting for this place: title, start and backbone stand in a method's row, "
        f"{in_place}",
    }
    return {
        "$defs": {
            "method": {
                "type": "object",
                "propertyNames": method,
                "additionalProperties": False,
                "properties": {**row, **properties},
            },
            "shared": {
                "type": "object",
                "propertyNames": shared,
                "additionalProperties": False,
                "properties": {**row, **properties},
            },
        }
    }


def pattern(_, wanted: str, value, schema: dict) -> Iterator[ValidationError]:
    """JSON Schema's `pattern`, in which $ is the end; Python's $ also matches before a final newline."""
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", wanted), value):
        yield ValidationError(f"{value!r} does not match {wanted!r}")


Strict = validators.extend(  # JSON Schema would accept 1.0 as an integer, and NaN as a number
    Draft202012Validator,
    {"pattern": pattern},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: type(value) is int,
            "number": lambda _, value: type(value) in (int, float) and -math.inf < value < math.inf,
        }
    ),
)


def unknown(error: ValidationError) -> list[str]:
    """The keys that an `additionalProperties` or `propertyNames` error is about."""
    if "propertyNames" in error.absolute_schema_path:
        return [error.instance]
    if error.validator != "additionalProperties":
        return []
    return [key for key in error.instance if key not in error.schema.get("properties", {})]


def sentence(error: ValidationError) -> str:
    """What is wrong and what is allowed, in one sentence."""
    place = ".".join(map(str, error.absolute_path)) or "the top level"
    if "description" in error.schema:
        return f"{place}: {error.instance!r} is not {error.schema['description']}"
    if unknown(error):
        keys = ", ".join(f"'{key}'" for key in unknown(error))
        allowed = error.schema.get("properties") or error.validator_value
        plain = [name for name in allowed if "." not in name]  # slot.key is a longer name of the same key
        return f"unknown key {keys} in {place}; known: {known(plain)}"
    if error.validator == "enum":
        return f"{place} is {error.instance!r}; allowed: {', '.join(map(str, error.validator_value))}"
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{place} lacks {', '.join(missing)}"
    if error.validator == "dependentRequired":
        key = next(key for key in error.validator_value if key in error.instance)
        return f"{place} lacks {', '.join(error.validator_value[key])}, without which {key} is not read"
    if error.validator == "oneOf":
        ways = [" and ".join(way["required"]) for way in error.validator_value]
        return f"{place} needs one of {', '.join(ways)}"
    if error.validator == "type":
        allowed = " or ".join(words(error.validator_value))
        return f"{place} is {error.instance!r}, not {allowed}{hint(error.instance, error.validator_value)}"
    return f"{place}: {error.message}"


def words(types: str | list[str]) -> list[str]:
    """JSON's names of types in plain words."""
    plain = {
        "object": "keys with values",
        "array": "a list",
        "string": "a word",
        "boolean": "true or false",
        "integer": "a whole number",
        "number": "a finite number",
    }
    return [plain.get(name, name) for name in ([types] if isinstance(types, str) else types)]


def hint(value, wanted: str | list[str] = ()) -> str:
    """How to write what YAML 1.1 read as another type: 1e-5 as a word, NO as false, 2024 as a number."""
    if "string" in wanted and isinstance(value, bool | int | float):
        return "; quote it, as YAML reads NO, yes and on as true or false, and digits as a number"
    try:
        numeric = isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        numeric = False
    if not numeric:
        return ""
    misread = isinstance(yaml.safe_load(value), str)
    return "; write 1.0e-5, not 1e-5" if misread else "; write it without quotes"
