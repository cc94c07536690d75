"""From settings to a typed run and back: a run has only the settings that its components read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from tailprompt.components.declare import ABSENT, Setting, every, settings_of
from tailprompt.components.run import PAIRED, Run
from tailprompt.errors import BadInput, known, named

Lookup = Callable[[str, str], object]  # (slot, key) -> what is given there, or ABSENT


def composed(lookup: Lookup, *, reads: str, trains: bool = True) -> tuple[Run, dict[tuple[str, str], object]]:
    """The run that `lookup` describes, and (slot, key) -> value for every key that its components read.

    reads: what the backbone takes, text or image. trains: False for a data set for test only.
    Raises BadInput for an unknown component, and for a missing key without a default.
    """
    chosen, told = {"reads": reads, "rows": "train" if trains else "test"}, {}
    return made(Run, lookup, chosen, told, ""), told


def made(component: type, lookup: Lookup, chosen: dict[str, str], told: dict, slot: str):
    """A component with all components below it; records in `chosen` and `told` what was chosen and read."""
    values = {}
    for each in settings_of(component):
        if not each.read_where(chosen):
            continue
        if each.kind == "part":
            (inner,) = each.options.values()
            values[each.name] = made(inner, lookup, chosen, told, slot)
            continue
        given = lookup(slot, each.name)
        if each.kind == "choice":
            usual = each.others.get(chosen["reads"], each.default)
            name = chosen[each.name] = told[slot, each.name] = usual if given is ABSENT else given
            option = named(each.options, name, each.name)
            check_taken(each, option, chosen)
            values[each.name] = made(option, lookup, chosen, told, each.name)
            continue
        if given is ABSENT and each.default is ABSENT:
            raise BadInput(f"no {each.name} is given, which {where_read(each.name)}")
        value = each.default if given is ABSENT else allowed(each, given, chosen.get(slot, ""))
        values[each.name] = told[slot, each.name] = value
    absent = {each.name for each in settings_of(component)} - values.keys()
    return component(**values, **dict.fromkeys(absent))


def allowed(key: Setting, given, owner: str):
    """A value as the key has it; raises BadInput for a word that this component does not know.

    The schema of a key takes what any component that declares it knows.
    """
    words = key.schema.get("enum", [given])
    if given not in words:
        beside = f" with {owner}" if owner else ""
        raise BadInput(f"{key.name} is {given!r}; allowed{beside}: {', '.join(map(str, words))}")
    return key.value(given)


def check_taken(slot: Setting, option: type, chosen: dict[str, str]) -> None:
    """Raise BadInput if a choice does not suit what the backbone reads, or a head the input or tuner."""
    takes = {name: getattr(each, "reads", chosen["reads"]) for name, each in slot.options.items()}
    if chosen["reads"] not in takes[option.name]:
        allowed = (name for name, reads in takes.items() if chosen["reads"] in reads)
        raise BadInput(f"{slot.name} is '{option.name}'; allowed on {chosen['reads']}: {', '.join(allowed)}")
    if slot.name == "head":
        check_fitted(option, chosen)
        for above in ("input", "tuner"):
            heads = getattr(options(above)[chosen[above]], "heads", [option.name])
            if option.name not in heads:
                raise BadInput(
                    f"head is '{option.name}'; allowed with {above} {chosen[above]}: {', '.join(heads)}"
                )


def check_fitted(head: type, chosen: dict[str, str]) -> None:
    """What a head that is fitted leaves to learn by steps: nothing, or the tuner from pairs.

    Raises BadInput for a tuner that nothing would teach.
    """
    if not getattr(head, "fitted", False):
        return
    tuner, alone = chosen["tuner"], chosen["reads"] == "image" or chosen["input"] == "tfidf"
    taken = ("frozen",) if alone else ("frozen", *PAIRED)
    if tuner not in taken:
        beside = f"head {head.name} and input {chosen['input']}"
        raise BadInput(f"tuner is '{tuner}'; allowed with {beside}: {known(taken)}")
    if chosen["rows"] == "train":
        chosen["rows"] = "fit" if tuner == "frozen" else "pairs"


def flat(told: dict[tuple[str, str], object]) -> dict[str, object]:
    """Settings as JSON, by the names of `names`."""
    return {
        name: list(told[place]) if isinstance(told[place], tuple) else told[place]
        for place, name in names(told).items()
    }


def names(told: dict[tuple[str, str], object]) -> dict[tuple[str, str], str]:
    """What each setting is called: its key, or slot.key where components read different values of one key."""
    values: dict[str, list] = {}
    for (_, key), value in told.items():
        values.setdefault(key, []).append(value)
    differ = {key for key, several in values.items() if any(one != several[0] for one in several)}
    return {(slot, key): f"{slot}.{key}" if slot and key in differ else key for slot, key in told}


def given_to(settings: dict, slot: str, key: str):
    """What settings give a component's key, or ABSENT; slot.key speaks to one component, key to all."""
    return settings.get(f"{slot}.{key}", settings.get(key, ABSENT))


def run_of(settings: dict, *, whole: bool = True) -> Run:
    """The typed run of settings that `flat` made.

    Raises BadInput for a value of another type or out of bounds; and where they are to be `whole`, for one
    that is missing or not read. Else a key that was declared since then has its default; a choice has none.
    """

    def lookup(slot: str, key: str):
        value = given_to(settings, slot, key)
        if value is ABSENT and (whole or is_choice(key)):
            raise BadInput(f"settings lack {key}")
        if value is not ABSENT and (wrong := fault(key, value)):
            raise BadInput(f"settings.{key}: {wrong}")
        return value

    reads = named(options("input"), lookup("", "input"), "input").reads
    run, told = composed(lookup, reads=reads, trains="lr" in settings)
    if whole and (idle := settings.keys() - names(told).values()):
        raise BadInput(f"settings have {known(idle)}, which this run does not read")
    return run


def fault(key: str, value) -> str:
    """What is wrong with the value of a key, or nothing; a start is checked where it is resolved."""
    if key == "start":
        return "" if value is None or isinstance(value, dict) else f"{value!r} is no start"
    error = best_match(checkers()[key].iter_errors(value))
    return error.message if error else ""


@cache
def checkers() -> dict[str, Draft202012Validator]:
    """The validator of each key's values."""
    return {key: Draft202012Validator(schema) for key, schema in property_schema().items()}


@cache
def options(slot: str) -> dict[str, type]:
    """The components of a slot, by name."""
    return next(each.options for _, _, each in every(Run) if each.kind == "choice" and each.name == slot)


@cache
def readers(key: str) -> tuple[tuple[str, str, Setting], ...]:
    """(slot, name of the component, field) for every component that reads a key, qualified or not."""
    slot, _, plain = key.rpartition(".")
    return tuple(
        (place, owner, each)
        for place, owner, each in every(Run)
        if each.kind != "part" and each.name == plain and slot in ("", place)
    )


@cache
def is_choice(key: str) -> bool:
    """Whether a key names a component, and is no number or word that one reads."""
    return any(each.kind == "choice" for _, _, each in readers(key))


@cache
def keys() -> frozenset[str]:
    """Every key that some component reads."""
    return frozenset(each.name for _, _, each in every(Run) if each.kind != "part")


def where_read(key: str) -> str:
    """In words, what a run must have for a key to be read."""
    places: dict[str, list[str]] = {}
    for slot, owner, each in readers(key):
        if slot:
            places.setdefault(slot, []).append(owner)
        for other, names in each.when.items():
            places.setdefault(other, []).extend(names)
    steps = places.pop("rows", None)
    if not places:
        return "every run reads that learns by steps" if steps else "every run reads"
    said = (f"{slot} is {' or '.join(dict.fromkeys(names))}" for slot, names in places.items())
    return f"is read only where {' and '.join(said)}"


def parts(component) -> Iterator[object]:
    """A component of a run and all components below it."""
    yield component
    for each in fields(component):
        value = getattr(component, each.name)
        if hasattr(value, "name") and hasattr(type(value), "__dataclass_fields__"):
            yield from parts(value)


def values(component, **chosen: str) -> dict[str, object]:
    """The keys of one component that are read beside these choices, as arguments of its function."""
    return {
        each.name: getattr(component, each.name)
        for each in settings_of(type(component))
        if each.kind == "key" and each.read_where(chosen)
    }


def property_schema() -> dict[str, dict]:
    """The JSON Schema of every key; of words the names that any component knows.

    Raises BadInput for a component that declares a key of another with other bounds.
    """
    schemas: dict[str, dict] = {}
    for slot, owner, each in every(Run):
        if each.kind == "part":
            continue
        own = {"enum": list(each.options)} if each.kind == "choice" else dict(each.schema)
        for name in (each.name, f"{slot}.{each.name}") if slot else (each.name,):
            first = schemas.setdefault(name, own)
            if "enum" in first and "enum" in own:
                schemas[name] = {**first, "enum": [*dict.fromkeys([*first["enum"], *own["enum"]])]}
            elif first != own:
                raise BadInput(
                    f"component '{owner}' declares {name} with other bounds than another component; "
                    "give its key a name of its own, or the same bounds"
                )
    return schemas


def documented() -> list[dict[str, str]]:
    """A row for every setting: what reads it, its name, its default as JSON ("" for none) and its meaning.

    Components whose keys differ in nothing share a row.
    """
    found: dict[tuple, list[str]] = {}
    for slot, owner, each in every(Run):
        if each.kind == "part":
            continue
        owners = found.setdefault((slot, each.name, default_of(each), meaning_of(each)), [])
        owners += [(owner, each.when)]
    rows = [
        (read_by(slot, dict.fromkeys(owner for owner, _ in places), places[0][1], beside=True), *rest)
        for (slot, *rest), places in found.items()
    ]
    return [dict(zip(("read by", "setting", "default", "meaning"), row, strict=True)) for row in rows]


def default_of(setting: Setting) -> str:
    """A default as JSON, without quotes."""
    if setting.default is ABSENT:
        return ""
    return setting.default if isinstance(setting.default, str) else json.dumps(setting.default)


def meaning_of(setting: Setting) -> str:
    """What a setting means, another default that it has on images, and the words that it may have."""
    others = "".join(f"; {name} on {reads}s" for reads, name in (setting.others or {}).items())
    words = [str(word) for word in setting.options or setting.schema.get("enum", ())]
    said = all(word in setting.says for word in words)
    return f"{setting.says}{others}" if said else f"{setting.says}{others} ({', '.join(words)})"


def read_by(slot: str, owners: Iterable[str], when: dict, *, beside: bool = False) -> str:
    """What reads a field, in words. beside: name the components that must be chosen beside those, too."""
    of = f"{slot} {', '.join(owners)}" if slot else "training" if "rows" in when else "every run"
    others = [f"{other} {' or '.join(names)}" for other, names in when.items() if other != "rows"]
    return f"{of} with {' and '.join(others)}" if beside and others else of
