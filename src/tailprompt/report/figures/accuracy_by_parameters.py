"""A score against the number of tuned parameters, ours and as printed (LPT Figure 1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailprompt.report import records
from tailprompt.report.figures import style
from tailprompt.report.parameters import counted

KINDS = ["tuned", "total"]
SCORE = "accuracy/all"
COLUMNS = ["parameters/tuned", "parameters/total", "score"]
LEAST = 0.01  # millions; the axis is linear below it, so that zero can be shown
LABELS = 12  # of names in the range of the scores
AREA = 70  # square points of the spot of the largest model


def accuracy_by_parameters(root: Path, spec: dict) -> Figure:
    """A panel for each data set; the area of a spot shows the parameters of the whole model."""
    reports, score = records.reports(root, spec), spec.get("score", SCORE)
    runs, table, _ = records.taken(root, spec, [score])
    test = table[(table.split == "test") & (table.score == score)]
    means = 100 * test.groupby(["dataset", "method"]).value.mean()
    figure, axes = style.panels(len(reports), 2, 3.4)
    for panel, (dataset, report) in zip(axes, reports.items(), strict=True):
        ours = counted(runs[(runs.dataset == dataset) & runs.there], KINDS)
        ours = spots(ours, means.get(dataset, pd.Series(dtype=float)), spec["methods"])
        reported = printed(spec, records.printed_name(report))
        both = pd.concat([ours, reported])
        most = both["parameters/total"].max() if len(both) else 0
        unit = AREA / most if most else 0
        draw(panel, ours, unit, color=style.HEAD, label="ours")
        draw(panel, reported, unit, color="none", label="as printed")
        label(panel, both)
        finish(panel, report["title"], score, most)
    if {"as printed"} & {words for panel in axes for words in panel.get_legend_handles_labels()[1]}:
        style.legend(figure)
    return figure


def spots(parameters: pd.DataFrame, scores: pd.Series, methods: list[dict]) -> pd.DataFrame:
    """COLUMNS of our methods on one data set, by title."""
    if parameters.empty:
        return pd.DataFrame(columns=COLUMNS, dtype=float)
    table = parameters.pivot(index="method", columns="metric", values="ours")
    titles = {method["name"]: style.title(method["title"]) for method in methods}
    return table.assign(score=scores).rename(index=titles)[COLUMNS].dropna()


def printed(spec: dict, dataset: str | None) -> pd.DataFrame:
    """COLUMNS of the first of the paper's tables that prints them all for a data set, by title."""
    table = records.printed(spec).replace({"metric": {spec.get("score", SCORE): "score"}})
    here = table[(table.dataset == dataset) & table.metric.isin(COLUMNS)]
    titles = spec.get("others", {}) | {method["name"]: method["title"] for method in spec["methods"]}
    for _, part in here.groupby("table", sort=False):
        wide = part.pivot(index="method", columns="metric", values="value")
        if set(COLUMNS) <= set(wide):
            return wide[COLUMNS].dropna().rename(index=titles)
    return pd.DataFrame(columns=COLUMNS, dtype=float)


def draw(axes: Axes, table: pd.DataFrame, unit: float, *, color: str, label: str) -> None:
    """Spots of `unit` square points a million parameters; hollow and filled spots differ in grey too."""
    tuned, total, score = (table[name].to_numpy() for name in COLUMNS)
    look = {"facecolor": color, "edgecolor": style.INK, "linewidth": 0.7, "alpha": 0.8}
    if len(table):
        axes.scatter(tuned, score, s=unit * total, label=label, **look)


def label(axes: Axes, table: pd.DataFrame) -> None:
    """Names in a column at the right, apart from each other, with a line to the spot of each."""
    if table.empty:
        return
    score = table["score"].to_numpy()
    heights = apart(score, max(score.max() - score.min(), 1.0) / LABELS)
    heights += score.mean() - heights.mean()
    for (name, spot), height in zip(table.iterrows(), heights, strict=True):
        place = {"xytext": (1.03, height), "textcoords": axes.get_yaxis_transform(), "va": "center"}
        line = {"arrowstyle": "-", "color": style.FAINT, "lw": 0.4}
        line |= {"shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
        axes.annotate(
            name, (spot["parameters/tuned"], spot["score"]), fontsize=5.5, arrowprops=line, zorder=0, **place
        )
    axes.update_datalim([(0, heights.min()), (0, heights.max())], updatex=False)


def apart(values: np.ndarray, gap: float) -> np.ndarray:
    """The values, moved up where two are closer than `gap`; their order stays."""
    order = np.argsort(values, kind="stable")
    steps = gap * np.arange(len(values))
    moved = np.empty(len(values))
    moved[order] = np.maximum.accumulate(values[order] - steps) + steps
    return moved


def finish(axes: Axes, title: str, score: str, most: float) -> None:
    """Set the scales and titles of a panel. most: parameters of the largest model, in millions."""
    axes.set_xscale("symlog", linthresh=LEAST)
    axes.set_xticks([0, 0.01, 1, 100], labels=["0", "0.01", "1", "100"])
    axes.set_xticks([0.1, 10, 1000], minor=True)
    axes.set_xlim(-LEAST / 2, 3000)
    axes.margins(y=0.1)
    axes.set_title(style.title(title))
    area = f"\narea: all, up to {most:,.1f}" if most else ""
    axes.set_xlabel(f"tuned parameters without\nthe classifier, millions{area}")
    axes.set_ylabel(style.tested(score))
    if not axes.collections:
        style.empty(axes)
