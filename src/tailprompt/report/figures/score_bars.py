"""A test score of methods side by side on each data set (PPT Figure 2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tailprompt.report import records
from tailprompt.report.figures import style

SCORE = "accuracy/all"


def score_bars(root: Path, spec: dict) -> Figure:
    """A group of bars for each data set: means over seeds, with error bars of one SD."""
    reports = records.reports(root, spec)
    _, table, _ = records.taken(root, spec)
    score = spec.get("score", SCORE)
    table = table[(table.split == "test") & (table.score == score)]
    values = (100 * table.value).groupby([table.dataset, table.method])
    mean, spread = values.mean(), values.std().fillna(0.0)
    figure, (axes,) = style.panels(1, 1, 2.8)
    width, methods = 0.8 / len(spec["methods"]), style.looks(spec)
    for place, (method, look) in enumerate(methods):
        keys = [(dataset, method["name"]) for dataset in reports]
        at = np.arange(len(keys)) + (place - (len(methods) - 1) / 2) * width
        ink = {"color": look["color"], "hatch": style.HATCHES[place], "edgecolor": style.INK}
        bars = {**ink, "linewidth": 0.5, "capsize": 2}
        heights, errors = ([part.get(key, np.nan) for key in keys] for part in (mean, spread))
        axes.bar(at, heights, width, yerr=errors, label=style.title(method["title"]), **bars)
    axes.set_xticks(range(len(reports)), labels=[style.title(report["title"]) for report in reports.values()])
    axes.set_ylabel(f"test {score.partition('/')[0]}")
    if table.empty:
        style.empty(axes)
    style.legend(figure)
    return figure
