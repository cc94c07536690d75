"""A test score against the number of training examples, with a line for each method (PPT Figure 4)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailprompt.report import records
from tailprompt.report.figures import style

SCORE = "accuracy/all"


def score_by_shots(root: Path, spec: dict) -> Figure:
    """A panel for each data set, with a point for each cut: means over seeds, with error bars of one SD."""
    looks, reports = style.looks(spec), records.reports(root, spec)
    _, table, _ = records.taken(root, spec)
    table = table[(table.split == "test") & (table.score == spec.get("score", SCORE))]
    points = pd.DataFrame(
        {
            "panel": table.dataset.map(lambda name: name.partition("@")[0]),
            "shots": table.dataset.map(lambda name: reports[name]["rows"]["train"]),
            "method": table.method,
            "value": 100 * table.value,
        }
    )
    titles = {name.partition("@")[0]: report["of"] for name, report in reports.items()}
    figure, axes = style.panels(len(titles), 2, 2.6)
    for panel, (name, title) in zip(axes, titles.items(), strict=True):
        draw(panel, points[points.panel == name], looks)
        panel.set_title(style.title(title))
        panel.set_xlabel("training examples")
        panel.set_ylabel(f"test {spec.get('score', SCORE).partition('/')[0]}")
    style.legend(figure)
    return figure


def draw(axes: Axes, points: pd.DataFrame, looks: list[tuple[dict, dict]]) -> None:
    """The lines of a panel."""
    if points.empty:
        style.empty(axes)
        return
    for method, look in looks:
        values = points[points.method == method["name"]].groupby("shots").value
        mean, spread = values.mean(), values.std().fillna(0.0)
        line = {"label": style.title(method["title"]), "markersize": 3, "linewidth": 1, "capsize": 2}
        axes.errorbar(mean.index, mean, yerr=spread, elinewidth=0.6, **line, **look)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(set(points.shots)), labels=[f"{n:,}" for n in sorted(set(points.shots))])
    axes.minorticks_off()
