"""A test score against the number of training examples, with a line for each method (PPT Figure 4)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from tailprompt.report import records
from tailprompt.report.figures import style

SCORE = "accuracy/all"


def score_by_shots(root: Path, spec: dict) -> Figure:
    """A panel for each data set, whose cuts are its points; means over seeds, bars of one SD."""
    titles, reports = style.titles(spec), records.reports(root, spec)
    score = spec.get("score", SCORE)
    _, table, _ = records.taken(root, spec, [score])
    table = table[(table.split == "test") & (table.score == score)]
    points = pd.DataFrame(
        {
            "panel": table.dataset.map(lambda name: name.partition("@")[0]),
            "shots": table.dataset.map(lambda name: reports[name]["rows"]["train"]),
            "title": table.method.map(titles),
            "value": 100 * table.value,
        }
    )
    sets = {name.partition("@")[0]: report["of"] for name, report in reports.items()}
    looks = style.looks(titles.values(), marks=True, dashes=True)
    figure, axes = style.panels(len(sets), 2, 2.6)
    for panel, (name, title) in zip(axes, sets.items(), strict=True):
        style.curves(panel, points[points.panel == name], "shots", looks, log=True)
        panel.set_title(style.title(title))
        panel.set_xlabel("training examples")
        panel.set_ylabel(style.tested(score))
    style.legend(figure)
    return figure
