"""How a component declares its settings.

A component is a frozen dataclass. It has three kinds of fields: a key is a value, a choice is one of several
components by name, and a part is a component that is always present. `when` says beside which choices a field
is read.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Literal, Union, get_args, get_origin, get_type_hints

ABSENT = object()  # no value; None is a value
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object"}


def component(name: str, title: str | None = None):
    """A class decorator that declares a component by its name in the configuration and in the registries.

    title: what tables call it, where they name what a row changes.
    """

    def declared(cls):
        cls.name, cls.title = name, title
        return dataclass(frozen=True, kw_only=True)(cls)

    return declared


def key(default=ABSENT, says: str = "", *, when: dict | None = None, of_data: bool = False, **schema):
    """Declare a key. says: its meaning. schema: JSON Schema in addition to its type.

    A key without a default must be given. of_data: whether only the row of a data set gives it.
    """
    metadata = {"says": says, "when": when or {}, "schema": schema, "of_data": of_data}
    return field(metadata=metadata) if default is ABSENT else field(default=default, metadata=metadata)


def choice(default: str, says: str, **others: str):
    """Declare a choice of one of several components. others: what the backbone reads -> its default."""
    return field(default=None, metadata={"says": says, "when": {}, "usual": default, "others": others})


def part(*, when: dict | None = None):
    """Declare a part: a component that is always present."""
    return field(default=None, metadata={"says": "", "when": when or {}})


@dataclass(frozen=True)
class Setting:
    """A field of a component, as the plan and the documentation read it.

    kind: key, choice or part. options: the components of a choice or part by name. schema: JSON Schema of a
    key.
    """

    name: str
    kind: str
    says: str
    when: dict[str, tuple[str, ...]]
    default: object = ABSENT
    others: dict[str, str] | None = None
    options: dict[str, type] | None = None
    schema: dict | None = None
    of_data: bool = False

    def read_where(self, chosen: dict[str, str]) -> bool:
        """Whether the field is read if these components are chosen. chosen: slot -> component."""
        return all(chosen.get(slot) in names for slot, names in self.when.items())

    def value(self, given):
        """A given value in the type that was declared."""
        if isinstance(given, list | tuple):
            return tuple(in_type(each, self.schema.get("items", {})) for each in given)
        return in_type(given, self.schema)


def in_type(given, schema: dict):
    """A value as its schema has it: 1 is 1.0 where a number is declared, so that both are one run."""
    return float(given) if type(given) is int and "number" in schema.get("type", ()) else given


@cache
def settings_of(component: type) -> tuple[Setting, ...]:
    """The fields of a component, in order."""
    hints = get_type_hints(component)
    return tuple(setting(each.name, hints[each.name], each) for each in fields(component))


def setting(name: str, hint, declared) -> Setting:
    """The setting of one dataclass field. hint: its type."""
    common = {key: declared.metadata[key] for key in ("says", "when")}
    members = members_of(hint)
    if all(hasattr(member, "name") for member in members):
        options = {member.name: member for member in members}
        if "usual" not in declared.metadata:
            return Setting(name, "part", **common, options=options)
        usual, others = declared.metadata["usual"], declared.metadata["others"]
        return Setting(name, "choice", **common, default=usual, others=others, options=options)
    schema, of_data = schema_of(members, declared), declared.metadata["of_data"]
    return Setting(
        name,
        "key",
        **common,
        default=ABSENT if declared.default is MISSING else declared.default,
        schema=schema,
        of_data=of_data,
    )


def members_of(hint) -> tuple:
    """The types in a union, or the single type."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def schema_of(members: tuple, declared) -> dict:
    """The JSON Schema of a key: that of its type, then what its declaration adds."""
    literal = [value for member in members if get_origin(member) is Literal for value in get_args(member)]
    if literal:
        return {"enum": literal, **declared.metadata["schema"]}
    if any(get_origin(member) is tuple for member in members):
        return {"type": "array", **declared.metadata["schema"]}
    names = ["null" if member is type(None) else TYPES[member] for member in members]
    return {"type": names[0] if len(names) == 1 else names, **declared.metadata["schema"]}


def every(
    component: type, slot: str = "", when: dict | None = None, owner: str = ""
) -> Iterator[tuple[str, str, Setting]]:
    """(slot, name of the component in it, field) for a component and all components below it.

    The fields of a part belong to the component that has the part.
    """
    for each in settings_of(component):
        inside = {**(when or {}), **each.when}
        yield slot, owner, replace(each, when=inside)
        for name, option in (each.options or {}).items():
            below = (each.name, inside, name) if each.kind == "choice" else (slot, inside, owner)
            yield from every(option, *below)
