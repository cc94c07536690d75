"""Why a run has its settings: the value of each, the layer and file that set it, and what reads it."""

from __future__ import annotations

import inspect
import json
import shutil
import textwrap
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path

from tailprompt.components.declare import settings_of
from tailprompt.components.resolve import documented, parts, read_by, readers
from tailprompt.errors import BadInput
from tailprompt.files import read_json
from tailprompt.plan import asked, standing
from tailprompt.plan.agreement import differing, same_start
from tailprompt.plan.blocks import all_points
from tailprompt.plan.layers import origin
from tailprompt.plan.places import BUNDLED
from tailprompt.plan.points import Point
from tailprompt.plan.settings import NAME, Resolved, resolved, settings

WIDEST = 28  # characters of a column; after a longer cell its row goes on in the next line
SHORT = 40  # characters of a value beside another


def explain(config: dict, layers: Iterable[tuple[str, dict]], point: Point, root: Path = Path(".")) -> str:
    """A line for each setting of a run, by what reads it; then in what the run on disk, if any, differs.

    layers: (file, content), as `config.layers_of` returns them. root: the project's folder.
    """
    run, layers = resolved(config, point), list(layers)
    lines = [
        (reader(run, key), (key, shown(value), *whence(run, key, layers, point)))
        for key, value in run.settings.items()
    ]
    header = ("setting", "value", "layer", "where")
    return "\n".join([*sections("read by", header, lines), "", *state(config, point, root)])


def every_setting() -> str:
    """A line for each setting that some component reads, by what reads it: its default and its meaning."""
    lines = [
        (row["read by"], (row["setting"], row["default"] or "must be given", row["meaning"]))
        for row in documented()
    ]
    width = shutil.get_terminal_size((110, 0)).columns
    return "\n".join(sections("read by", ("setting", "default", "meaning"), lines, width=width))


def sections(
    title: str, header: tuple[str, ...], lines: list[tuple[str, tuple[str, ...]]], *, width: int | None = None
) -> list[str]:
    """Rows of columns under the names that they come with; each name once, in the order of its first row."""
    order = list(dict.fromkeys(name for name, _ in lines))
    lines = sorted(lines, key=lambda line: order.index(line[0]))
    first, *rows = aligned([header, *(row for _, row in lines)], width=width)
    pairs = zip((name for name, _ in lines), rows, strict=True)
    found = [f"  {line}" for line in first]
    for name, group in groupby(pairs, key=lambda pair: pair[0]):
        found += ["", f"{title} {name}", *(f"  {line}" for _, row in group for line in row)]
    return found


def shown(value) -> str:
    """A value as it is written in YAML and in the name of a method."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def whence(run: Resolved, key: str, layers: list[tuple[str, dict]], point: Point) -> tuple[str, str]:
    """The layer that sets a key, and where it stands; of a default where its component declares it."""
    layer = run.origins[key]
    if layer is None:
        return "default", declared_at(run, key)
    if layer.place == NAME:
        return layer.name, point.method
    name = key if key in layer.values else key.rpartition(".")[2]
    place = list(layer.place_of(name))
    file = origin(layers, place)
    return layer.name, f"{file}: {'.'.join(place[:-1] if place[-1] == name else place)}"


def declared_at(run: Resolved, key: str) -> str:
    """The file and line in which a component of the run declares a key."""
    slot, _, name = key.rpartition(".")
    owners = [part for part in parts(run.run) if any(each.name == name for each in settings_of(type(part)))]
    owner = type(min(owners, key=lambda part: part.name != run.settings.get(slot)))
    lines, first = source(owner)
    line = next(number for number, text in enumerate(lines) if text.strip().startswith(f"{name}:"))
    return f"src/{owner.__module__.replace('.', '/')}.py:{first + line}"


@cache
def source(component: type) -> tuple[list[str], int]:
    """The lines of a component's declaration, and the number of the first."""
    return inspect.getsourcelines(component)


def reader(run: Resolved, key: str) -> str:
    """The components of the run that read a setting."""
    there = [place for place in readers(key) if not place[0] or run.settings.get(place[0]) == place[1]]
    return " and ".join(dict.fromkeys(read_by(slot, [owner], each.when) for slot, owner, each in there))


def state(config: dict, point: Point, root: Path) -> list[str]:
    """Whether a run is planned and was made, and in what the one on disk differs from what is asked now."""
    results = root / "results" / config["scale"]
    here = standing.present(config, root)
    folder = standing.run_folder(config, point, here, root)
    planned = point in all_points(config)
    unplanned = [] if planned else [f"No table or figure of scale {config['scale']} takes this run."]
    if not (folder / "run.json").is_file():
        return [*unplanned, f"{folder} is not there yet."]
    record = read_json(folder / "run.json", "settings")
    wanted = asked.asked(config, point, settings(config, point), here.weights(point.backbone), root)
    changed = [
        f"Data set {name} will be prepared anew, as its row or its files are others now; then the run is "
        "trained anew, unless its rows turn out to be the same."
        for name in standing.waits_for_rows(config, point, here, root)
    ]
    return [*unplanned, *differences(record, wanted, folder, results), *changed]


def differences(record: dict, wanted: dict, folder: Path, results: Path) -> list[str]:
    """In what the run in `folder` is not what is asked now. record: its run.json. results: of the scale."""
    rows = [
        (key.removeprefix("settings."), cut(at(record, key)), cut(at(wanted, key)))
        for key in differing(record, wanted)
    ]
    if rows:
        table = [line for row in aligned([("", "then", "now"), *rows], widest=SHORT) for line in row]
        return [f"{folder} was trained otherwise:", "", *(f"  {line}" for line in table)]
    if not same_start(record, folder, wanted):
        first = wanted["start"]["run"]
        return [f"{folder} began from {results / 'runs' / first}, which has other weights now."]
    return [f"{folder} was trained with these settings{computed(record)}."]


def computed(record: dict) -> str:
    """The number format and device of a run, as the end of a sentence; empty of a run that does not say."""
    form = record.get("computed_in")
    return f", computed in {form} on {record['device']}" if form else ""


def at(about: dict, key: str):
    """The value of a key of `differing` in run.json, or in what is asked."""
    name, _, inner = key.partition(".")
    found = about.get(name)
    return (found or {}).get(inner) if inner else found


def cut(value) -> str:
    """A value, at most SHORT characters of it."""
    text = shown(value)
    return text if len(text) <= SHORT else f"{text[: SHORT - 3]}..."


def aligned(
    rows: list[tuple[str, ...]], *, width: int | None = None, widest: int = WIDEST
) -> list[list[str]]:
    """Rows as lines with aligned columns; the last column is wrapped so that a line has at most `width`."""
    columns = list(zip(*rows, strict=True))[:-1]
    widths = [max(len(cell) for cell in column if len(cell) <= widest) for column in columns]
    start = sum(widths) + 2 * len(widths)
    found = []
    for *cells, last in rows:
        *full, before = filled(cells, widths)
        room = max(20, width - start - 2) if width else None
        first, *more = (textwrap.wrap(last, room, break_on_hyphens=False) if room else [last]) or [""]
        lines = [*full, f"{before}{first}", *(" " * start + line for line in more)]
        found.append([line.rstrip() for line in lines])
    return found


def filled(cells: Iterable[str], widths: list[int]) -> list[str]:
    """The lines of cells in columns; a cell that is wider than its column ends its line."""
    lines, start = [""], 0
    for cell, size in zip(cells, widths, strict=True):
        lines[-1] += f"{cell:{size}}  "
        start += size + 2
        if len(cell) > size:
            lines.append(" " * start)
    return lines


def point_at(path: str) -> tuple[str | None, Point]:
    """The scale and point of `results/<scale>/runs/<point>`; a point alone gives no scale.

    Raises BadInput for any other path.
    """
    words = tuple(word for word in Path(path).parts if word != BUNDLED)
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
