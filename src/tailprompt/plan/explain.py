"""Why a run has its settings: each one's value, the layer and file it is from, and what reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tailprompt.components.resolve import documented, readers
from tailprompt.errors import BadInput
from tailprompt.files import read_json
from tailprompt.plan.layers import origin
from tailprompt.plan.points import Point
from tailprompt.plan.settings import NAME, Resolved, resolved

HEADER = ("setting", "value", "from", "read by")


def explain(config: dict, layers: Iterable[tuple[str, dict]], point: Point, root: Path = Path(".")) -> str:
    """A line for each setting of a run; where the run exists, what its run.json says otherwise.

    layers: (file, what it says), as `config.layers_of` reads them. root: the project's folder.
    """
    found, layers = resolved(config, point), list(layers)
    rows = [
        (key, shown(value), whence(found, key, layers, point), reader(found, key))
        for key, value in found.settings.items()
    ]
    folder = root / "results" / config["scale"] / "runs" / point.path
    return "\n".join([*aligned([HEADER, *rows]), "", *differences(folder, found.settings)])


def every_setting() -> str:
    """A line for each setting that some component reads: who reads it, its default, its meaning."""
    header = ("component", "setting", "default", "meaning")
    return "\n".join(aligned([header, *(tuple(row.values()) for row in documented())]))


def shown(value) -> str:
    """A value as YAML and the name of a method have it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def whence(found: Resolved, key: str, layers: list[tuple[str, dict]], point: Point) -> str:
    """The layer that gives a setting and its file, or the component whose default it is."""
    layer = found.origins.get(key)
    if layer is None:
        return "default"
    name = key if key in layer.values else key.rpartition(".")[2]
    if layer.place == NAME:
        return f"name of the method ({point.method})"
    place = layer.place_of(name)
    return f"{layer.name} ({origin(layers, list(place))}: {'.'.join(place)})"


def reader(found: Resolved, key: str) -> str:
    """The components of the run that read a setting."""
    chosen = {name: found.settings.get(name) for name in found.settings}
    names = []
    for slot, owner, each in readers(key):
        if not slot or chosen.get(slot) == owner:
            names.append(f"{slot} {owner}" if slot else "every run" if not each.when else "training")
    return ", ".join(dict.fromkeys(names))


def differences(folder: Path, settings: dict) -> list[str]:
    """What a run that is there was told otherwise."""
    if not (folder / "run.json").is_file():
        return [f"{folder} is not there yet."]
    told = read_json(folder / "run.json", "settings")["settings"]
    keys = sorted({key for key in told.keys() | settings.keys() if told.get(key) != settings.get(key)})
    extra = {"features", "vectors"}
    rows = [(key, shown(told.get(key)), shown(settings.get(key))) for key in keys if key not in extra]
    if not rows:
        return [f"{folder} was trained with these settings."]
    return [f"{folder} was trained otherwise:", "", *aligned([("setting", "then", "now"), *rows])]


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as lines of columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def point_at(path: str) -> tuple[str | None, Point]:
    """The scale, where it is named, and the point of `results/<scale>/runs/<point>` or of a point alone."""
    words = Path(path).parts
    if "runs" in words:
        at = len(words) - 1 - words[::-1].index("runs")
        scale, words = (words[at - 1] if at else None), words[at + 1 :]
    else:
        scale = None
    try:
        return scale, Point.at("/".join(words))
    except (TypeError, ValueError):
        raise BadInput(
            f"{path} is no run; such are results/<scale>/runs/<protocol>/<backbone>/<dataset>/<method>/<seed>"
        ) from None
