"""A test score against a setting, with a line for each method (P-Tuning v2, Figures 1, 3 and 4).

`over` is length (of prompts), layers (the number of first or last layers that have them), or size (parameters
of the whole model, where a block names several backbones).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from tailprompt.report import records
from tailprompt.report.figures import style

SCORE = "accuracy/all"
OVER = {
    "length": "prompt length",
    "layers": "number of layers with prompts",
    "size": "parameters of the model, millions",
}
FIRST, LAST = "first layers", "last layers"
COLUMNS = ["dataset", "title", "seed", "x", "value"]


def score_by_setting(root: Path, spec: dict) -> Figure:
    """A panel for each data set, or one for their mean (`average`); means over seeds, bars of one SD."""
    reports, score = records.reports(root, spec), spec.get("score", SCORE)
    runs, table, _ = records.taken(root, spec, [score])
    scores = table[(table.split == "test") & (table.score == score)]
    points = placed(scores.merge(runs[["dataset", "run", "seed", "method", "record"]]), spec)
    sets = {name: report["title"] for name, report in reports.items()}
    if spec.get("average"):
        points, sets = averaged(points, len(sets)), {"mean": f"Mean of {', '.join(sets.values())}"}
    titles = [FIRST, LAST] if spec["over"] == "layers" else dict.fromkeys(lines(spec).values())
    looks = style.looks(titles, marks=True, dashes=True)
    figure, axes = style.panels(len(sets), 2, 2.6)
    for panel, (name, title) in zip(axes, sets.items(), strict=True):
        style.curves(panel, points[points.dataset == name], "x", looks)
        panel.set_title(style.title(title))
        panel.set_xlabel(OVER[spec["over"]])
        panel.set_ylabel(style.tested(score))
    style.legend(figure)
    return figure


def lines(spec: dict) -> dict[str, str]:
    """Method of a block -> the title of its line: what is common to the titles of its method's points."""
    points: dict[str, list[list[str]]] = {}
    for method in spec["methods"]:
        points.setdefault(base(method["name"]), []).append(style.title(method["title"]).split(", "))
    common = {
        name: ", ".join(parts[0] for parts in zip(*titles, strict=False) if len(set(parts)) == 1)
        for name, titles in points.items()
    }
    return {method["name"]: common[base(method["name"])] for method in spec["methods"]}


def base(name: str) -> str:
    """The method of a row of a block, without what follows @ and without its backbone."""
    return name.partition("/")[0].partition("@")[0]


def placed(scores: pd.DataFrame, spec: dict) -> pd.DataFrame:
    """COLUMNS of each run; a run with prompts in all layers is a point of both lines over layers.

    scores: a row for each run, with `record`, the content of its run.json.
    """
    titles, over = lines(spec), spec["over"]
    rows = [
        {"dataset": one.dataset, "title": title, "seed": one.seed, "x": x, "value": 100 * one.value}
        for one in scores.itertuples()
        for title, x in (
            ends(one.record["settings"]["layers"], depth(scores.record))
            if over == "layers"
            else [(titles[one.method], x_of(one.record, over))]
        )
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def x_of(record: dict, over: str) -> float | None:
    """The length of the prompts of a run, or the parameters of its model in millions."""
    return record["total"] / 1e6 if over == "size" else record["settings"].get(over)


def depth(kept: pd.Series) -> int:
    """The last layer that any of these runs names."""
    named = [record["settings"]["layers"] for record in kept]
    return max([int(layers.partition("-")[2]) for layers in named if layers != "all"], default=1)


def ends(layers: str, depth: int) -> list[tuple[str, int]]:
    """(line, number of layers) of the `layers` of a run, as 17-24: the first or the last ones, or both."""
    first, _, last = (f"1-{depth}" if layers == "all" else layers).partition("-")
    count = int(last) - int(first) + 1
    return [(FIRST, count)] * (int(first) == 1) + [(LAST, count)] * (int(last) == depth)


def averaged(points: pd.DataFrame, count: int) -> pd.DataFrame:
    """The mean over `count` data sets of the points that all have, as of a data set `mean`."""
    each = points.groupby(["title", "x", "seed"], sort=False).value.agg(["mean", "count"]).reset_index()
    return each[each["count"] == count].rename(columns={"mean": "value"}).assign(dataset="mean")[COLUMNS]
