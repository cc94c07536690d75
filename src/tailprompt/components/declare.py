"""How a component declares its settings.

A component is a frozen dataclass. Its fields are of three kinds: a key (a value), a choice (one of several
components, by name) and a part (a component that is always there). `when` says with which choices a field is
read.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Literal, Union, get_args, get_origin, get_type_hints

ABSENT = object()  # no value, where None is one
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object"}


def component(name: str):
    """A class decorator: a component that the configuration calls `name`, as its function is called."""

    def declared(cls):
        cls.name = name
        return dataclass(frozen=True, kw_only=True)(cls)

    return declared


def key(default=ABSENT, says: str = "", *, when: dict | None = None, of_data: bool = False, **schema):
    """A value. schema: JSON Schema beside its type. Without a default it must be stated.

    of_data: a data set's row states it, and nothing else.
    """
    told = {"says": says, "when": when or {}, "schema": schema, "of_data": of_data}
    return field(metadata=told) if default is ABSENT else field(default=default, metadata=told)


def choice(default: str | None = None, says: str = "", *, when: dict | None = None, **others: str):
    """One of several components. others: what the backbone reads -> the default there."""
    return field(
        default=None, metadata={"says": says, "when": when or {}, "usual": default, "others": others}
    )


def part(*, when: dict | None = None):
    """A component that is always there."""
    return field(default=None, metadata={"says": "", "when": when or {}})


@dataclass(frozen=True)
class Setting:
    """A field of a component, as the plan and the documentation read it.

    kind: key, choice or part. options: components by name, of a part its own. schema: JSON Schema of a value.
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
        """Whether the field is read where these components were chosen."""
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
    """One field, by what its type is."""
    told = {key: declared.metadata[key] for key in ("says", "when")}
    members = members_of(hint)
    if all(hasattr(member, "name") for member in members):
        options = {member.name: member for member in members}
        if "usual" not in declared.metadata:
            return Setting(name, "part", **told, options=options)
        usual, others = declared.metadata["usual"], declared.metadata["others"]
        return Setting(name, "choice", **told, default=usual, others=others, options=options)
    schema, of_data = schema_of(members, declared), declared.metadata["of_data"]
    return Setting(
        name,
        "key",
        **told,
        default=ABSENT if declared.default is MISSING else declared.default,
        schema=schema,
        of_data=of_data,
    )


def members_of(hint) -> tuple:
    """The types of a union, or the one type."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def schema_of(members: tuple, declared) -> dict:
    """JSON Schema of a key: of its type, then what it adds."""
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
    """(slot, name of what was chosen there, field) of a component and of all below it.

    A part belongs to what it is a part of.
    """
    for each in settings_of(component):
        inside = {**(when or {}), **each.when}
        yield slot, owner, replace(each, when=inside)
        for name, option in (each.options or {}).items():
            below = (each.name, inside, name) if each.kind == "choice" else (slot, inside, owner)
            yield from every(option, *below)
