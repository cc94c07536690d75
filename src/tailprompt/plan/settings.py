"""The settings of a run: what each layer of the configuration says, and what of it the components read."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailprompt.components.declare import ABSENT
from tailprompt.components.resolve import composed, flat, given_to, keys, names, readers, where_read
from tailprompt.components.run import Run
from tailprompt.errors import BadInput, known, named
from tailprompt.inputs.templates import template_named
from tailprompt.plan.extras import extras
from tailprompt.plan.points import Point, parse
from tailprompt.plan.rows import dataset_row, form_of, kind_of
from tailprompt.plan.starts import starting

NAME = ("@",)  # where what follows the @ of a method stands
OF_A_ROW = {"title", "backbone"}  # of a method's row, and no settings


@dataclass(frozen=True)
class Layer:
    """Values that some place of the configuration gives, by key or slot.key. place: the keys that lead there.

    chosen: they are for this method alone, so that each must be read. elsewhere: places of single keys.
    """

    name: str
    place: tuple[str, ...]
    values: dict
    chosen: bool = False
    elsewhere: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def place_of(self, key: str) -> tuple[str, ...]:
        """Where a key of it stands."""
        return self.elsewhere.get(key, (*self.place, key))


@dataclass(frozen=True)
class Resolved:
    """A run as it is composed, its settings as JSON, and the layer that gave each (None: its default)."""

    run: Run
    settings: dict
    origins: dict[str, Layer | None]


def settings(config: dict, point: Point) -> dict:
    """All that training a point needs to know, flat, and the `features` and `vectors` of figures."""
    return resolved(config, point).settings | extras(config, point)


def resolved(config: dict, point: Point) -> Resolved:
    """The settings of a point; later layers win.

    Raises BadInput where a key of the method's own is not read, or one that is read is not given.
    """
    dataset = dataset_row(config, point.dataset)
    layers = layers_of(config, point, dataset)
    origins: dict[tuple[str, str], Layer | None] = {}
    trains = "trained_on" not in dataset

    def lookup(slot: str, key: str):
        origins[slot, key], given = found(layers, slot, key)
        if key == "start":
            if not trains:
                origins[slot, key] = layers[0]
            return starting(config, point)
        if given is ABSENT and key in ("template", "max_length"):
            raise lacking(config, dataset, key)
        return words(given, dataset, layers) if key == "template" else given

    try:
        run, told = composed(lookup, reads=kind_of(dataset), trains=trains)
    except BadInput as wrong:
        raise BadInput(f"{point.method} on {point.dataset} under {point.protocol}: {wrong}") from None
    if trains:
        check_read(layers, told, point, kind_of(dataset))
    return Resolved(run, flat(told), {name: origins[place] for place, name in names(told).items()})


def layers_of(config: dict, point: Point, dataset: dict) -> list[Layer]:
    """What may give a run its settings, the later over the earlier."""
    (base, changes), name = parse(point.method), dataset["name"]
    protocol = named(config["protocols"], point.protocol, "protocol")
    under = ("protocols", point.protocol)
    method = named(config["methods"], base, "method")
    row = {key: value for key, value in method.items() if key not in OF_A_ROW}
    backbone = named(config["backbones"], point.backbone, "backbone").get("settings", {})
    here = protocol.get("datasets", {}).get(name, {})
    there = protocol.get("cells", {}).get(name, {}).get(base, {})
    return [
        data_layer(config, dataset),
        Layer("protocol", (*under, "settings"), protocol["settings"]),
        Layer("backbone", ("backbones", point.backbone, "settings"), backbone),
        Layer("method", ("methods", base), row, chosen=True),
        Layer("protocol's data set", (*under, "datasets", name), here),
        Layer("protocol's cell", (*under, "cells", name, base), there, chosen=True),
        Layer("name of the method", NAME, changes, chosen=True),
    ]


def found(layers: list[Layer], slot: str, key: str) -> tuple[Layer | None, object]:
    """The last layer that gives a component's key, and its value."""
    for layer in reversed(layers):
        given = given_to(layer.values, slot, key)
        if given is not ABSENT:
            return layer, given
    return None, ABSENT


def data_layer(config: dict, row: dict) -> Layer:
    """What a data set's row says of its texts; a template or length that it leaves out is its language's."""
    place, language = ("datasets", row["name"]), row["language"]
    if kind_of(row) == "image":
        return Layer("data set", place, {}, elsewhere={"start": (*place, "trained_on")})
    stated = {key: row[key] for key in ("template", "max_length", "verbalizer") if row.get(key) is not None}
    usual = config["languages"].get(language, {})
    template = "template_with_pair" if form_of(row) == "spc" else "template"
    left = {"template": usual.get(template), "max_length": usual.get("max_length")}
    made = {key: value for key, value in left.items() if value is not None and key not in stated}
    elsewhere = {key: ("languages", language, template if key == "template" else key) for key in made}
    return Layer("data set", place, {"language": language, **made, **stated}, elsewhere=elsewhere)


def lacking(config: dict, row: dict, key: str) -> BadInput:
    """What to say of a data set without a template or a length."""
    return BadInput(
        f"data set '{row['name']}' has no {key}, and 'languages' none for '{row['language']}' "
        f"(it has {known(config['languages'])}); state it in the data set's row"
    )


def words(template: str, row: dict, layers: list[Layer]) -> str:
    """A template in words: `as_released` is the data set's own of that name, others are those of PPT."""
    if template == "as_released":
        own = layers[0].values
        return row.get("template_as_released") or own.get("template") or template
    return template if "{" in template else template_named(template, row["language"], form_of(row))


def check_read(layers: list[Layer], told: dict[tuple[str, str], object], point: Point, reads: str) -> None:
    """Raise BadInput for a key that a method's own layers give and no component of the run reads."""
    read = {name for slot, key in told for name in (key, f"{slot}.{key}")}
    for layer in layers:
        named_after = {"start"} if layer.place == NAME else set()  # a start stands in a row
        idle = sorted(layer.values.keys() - (read - named_after)) if layer.chosen else []
        if not idle:
            continue
        key = idle[0]
        if key in named_after or not readers(key):
            raise BadInput(f"'{point.method}': no setting {known(idle)}; known: {known(keys())}")
        where = "" if layer.place == NAME else f" (from {'.'.join(layer.place)})"
        what = f"data set '{point.dataset}' is {reads}"
        raise BadInput(f"'{point.method}': {key}{where} {where_read(key)}; {what}")
