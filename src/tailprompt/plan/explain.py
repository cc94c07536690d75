"""Why a run has its settings: the value of each, the layer and file that set it, and what reads it."""

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
    """A line for each setting of a run; if the run exists, also the settings in which it differs.

    layers: (file, content), as `config.layers_of` returns them. root: the project's folder.
    """
    run, layers = resolved(config, point), list(layers)
    rows = [
        (key, shown(value), whence(run, key, layers, point), reader(run, key))
        for key, value in run.settings.items()
    ]
    folder = root / "results" / config["scale"] / "runs" / point.path
    return "\n".join([*aligned([HEADER, *rows]), "", *differences(folder, run.settings)])


def every_setting() -> str:
    """A line for each setting of each component, with its default and its meaning."""
    header = ("component", "setting", "default", "meaning")
    return "\n".join(aligned([header, *(tuple(row.values()) for row in documented())]))


def shown(value) -> str:
    """A value as it is written in YAML and in the name of a method."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def whence(run: Resolved, key: str, layers: list[tuple[str, dict]], point: Point) -> str:
    """The layer that sets a key, with its file, or `default`."""
    layer = run.origins.get(key)
    if layer is None:
        return "default"
    name = key if key in layer.values else key.rpartition(".")[2]
    if layer.place == NAME:
        return f"name of the method ({point.method})"
    place = layer.place_of(name)
    return f"{layer.name} ({origin(layers, list(place))}: {'.'.join(place)})"


def reader(run: Resolved, key: str) -> str:
    """The components of the run that read a setting."""
    chosen = {name: run.settings.get(name) for name in run.settings}
    names = []
    for slot, owner, each in readers(key):
        if not slot or chosen.get(slot) == owner:
            names.append(f"{slot} {owner}" if slot else "every run" if not each.when else "training")
    return ", ".join(dict.fromkeys(names))


def differences(folder: Path, settings: dict) -> list[str]:
    """The settings in which a run that exists differs from what is asked now."""
    if not (folder / "run.json").is_file():
        return [f"{folder} is not there yet."]
    then = read_json(folder / "run.json", "settings")["settings"]
    keys = sorted({key for key in then.keys() | settings.keys() if then.get(key) != settings.get(key)})
    extra = {"features", "vectors"}
    rows = [(key, shown(then.get(key)), shown(settings.get(key))) for key in keys if key not in extra]
    if not rows:
        return [f"{folder} was trained with these settings."]
    return [f"{folder} was trained otherwise:", "", *aligned([("setting", "then", "now"), *rows])]


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def point_at(path: str) -> tuple[str | None, Point]:
    """The scale and point of `results/<scale>/runs/<point>`; a point alone gives no scale.

    Raises BadInput for any other path.
    """
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
