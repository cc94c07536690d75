"""The settings of a run: what the layers of the configuration give, and which of it its components read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from tailprompt.components.declare import ABSENT
from tailprompt.components.resolve import (
    composed,
    flat,
    given_to,
    is_choice,
    keys,
    names,
    readers,
    where_read,
)
from tailprompt.components.run import Run
from tailprompt.errors import BadInput, known, named
from tailprompt.inputs.templates import template_named
from tailprompt.plan.extras import extras
from tailprompt.plan.points import Point, parse
from tailprompt.plan.rows import dataset_row, form_of, has_passages, has_tags, kind_of
from tailprompt.plan.starts import starting

NAME = ("@",)  # the place of what follows the @ of a method
OF_A_ROW = {"title", "backbone"}  # keys of a method's row that are not settings


@dataclass(frozen=True)
class Layer:
    """The values of one place in the configuration, by key or slot.key. place: the keys that lead there.

    chosen: whether the values are for this method alone, so that each must be read. elsewhere: the places of
    single keys that stand elsewhere.
    """

    name: str
    place: tuple[str, ...]
    values: dict
    chosen: bool = False
    elsewhere: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def place_of(self, key: str) -> tuple[str, ...]:
        """The place of one of its keys."""
        return self.elsewhere.get(key, (*self.place, key))


@dataclass(frozen=True)
class Resolved:
    """A composed run, its settings as JSON values, and the layer that gave each (None: its default)."""

    run: Run
    settings: dict
    origins: dict[str, Layer | None]


def settings(config: dict, point: Point) -> dict:
    """All settings that training a point needs, flat, with the `features` and `vectors` that figures need."""
    return resolved(config, point).settings | extras(config, point)


def resolved(config: dict, point: Point) -> Resolved:
    """The settings of a point; a later layer overrides an earlier one.

    Raises BadInput if no component reads a key that is given for the method alone, or if a key that is read
    is not given.
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
    """The layers that may give a run its settings; a later one overrides an earlier one."""
    (base, changes), name = parse(point.method), dataset["name"]
    protocol = named(config["protocols"], point.protocol, "protocol")
    under = ("protocols", point.protocol)
    method = named(config["methods"], base, "method")
    row = {key: value for key, value in method.items() if key not in OF_A_ROW}
    backbone = named(config["backbones"], point.backbone, "backbone").get("settings", {})
    here = {
        key: value
        for key, value in protocol.get("datasets", {}).get(name, {}).items()
        if key not in row or not is_choice(key)  # a method stays what its row makes it of
    }
    cells = protocol.get("cells", {}).get(name, {})
    on_backbone = f"{base}/{point.backbone}"
    return [
        data_layer(config, dataset),
        Layer("protocol", (*under, "settings"), protocol["settings"]),
        Layer("backbone", ("backbones", point.backbone, "settings"), backbone),
        Layer("method", ("methods", base), row, chosen=True),
        Layer("protocol's data set", (*under, "datasets", name), here),
        *(
            Layer("protocol's cell", (*under, "cells", name, cell), cells.get(cell, {}), chosen=True)
            for cell in (base, on_backbone)
        ),
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
    """What the row of a data set says of its texts; its language gives a template or length that it omits."""
    place, language = ("datasets", row["name"]), row["language"]
    if kind_of(row) == "image":
        return Layer("data set", place, {}, elsewhere={"start": (*place, "trained_on")})
    stated = {key: row[key] for key in ("template", "max_length", "verbalizer") if row.get(key) is not None}
    usual = config["languages"].get(language, {})
    template = "template_with_pair" if form_of(row) == "spc" else "template"
    left = {"template": usual.get(template), "max_length": usual.get("max_length")}
    added = {key: value for key, value in left.items() if value is not None and key not in stated}
    elsewhere = {key: ("languages", language, template if key == "template" else key) for key in added}
    elsewhere |= {"start": (*place, "trained_on")}
    stated |= suiting(row)
    return Layer("data set", place, {"language": language, **added, **stated}, elsewhere=elsewhere)


WINDOW = 384  # tokens of a passage that are read at once (P-Tuning v2 and BERT on SQuAD)


def suiting(row: dict) -> dict:
    """The input and head of a data set that is not of plain texts, for methods that name none."""
    if has_tags(row):
        return {"input": "plain", "head": "predictor"}
    if has_passages(row):
        given = {"input": "windows", "head": "predictor", "unanswerable": row.get("unanswerable", False)}
        return given if row.get("max_length") else {**given, "max_length": WINDOW}
    return {"input": "options"} if form_of(row) == "mcc" else {}


def lacking(config: dict, row: dict, key: str) -> BadInput:
    """The error for a data set without a template or a length."""
    return BadInput(
        f"data set '{row['name']}' has no {key}, and 'languages' none for '{row['language']}' "
        f"(it has {known(config['languages'])}); state it in the data set's row"
    )


def words(template: str, row: dict, layers: list[Layer]) -> str:
    """The text of a template. `as_released` is the data set's own of that name; other names are PPT's."""
    if template == "as_released":
        own = layers[0].values
        return row.get("template_as_released") or own.get("template") or template
    return template if "{" in template else template_named(template, row["language"], form_of(row))


def check_read(layers: list[Layer], told: dict[tuple[str, str], object], point: Point, reads: str) -> None:
    """Raise BadInput for a key that is given for the method alone and that no component of the run reads."""
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


def check_name(cell: Point, asked: Resolved, known_as: dict[tuple, str]) -> None:
    """Raise BadInput for a second name of a run, which would be trained twice.

    known_as: a cell with what the name of its method changes -> that name; the cell is added.
    """
    if asked.run.training is None:  # a test of another run, which its name tells
        return
    changed = {key: asked.settings[key] for key, by in asked.origins.items() if by and by.place == NAME}
    place = (replace(cell, method=parse(cell.method)[0]), json.dumps(changed, sort_keys=True))
    first = known_as.setdefault(place, cell.method)
    if first != cell.method:
        raise BadInput(
            f"'{first}' and '{cell.method}' are two names of one run on {cell.dataset} under "
            f"{cell.protocol}; take one of them everywhere"
        )
