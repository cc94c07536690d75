"""The score of each class against its number of training examples, for several methods."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailprompt.report import records
from tailprompt.report.figures import style

BINS = 7
TITLES = {"f1": "F1", "precision": "precision", "recall": "accuracy"}


def score_by_frequency(root: Path, spec: dict) -> Figure:
    """A panel for each data set with a line for each method; the recall of a class is its accuracy."""
    looks = style.looks(spec)
    reports = records.reports(root, spec)
    table = records.scores(records.runs(root, spec))
    metric = spec.get("metric", "f1")
    table = table[(table.split == "test") & (table.metric == metric) & table.group.str.startswith("class:")]
    means = table.groupby(["dataset", "method", "group"]).value.mean()
    figure, axes = style.panels(len(reports), 2, 2.5, sharey=True)
    for panel, (dataset, report) in zip(axes, reports.items(), strict=True):
        for method, look in looks:
            key = (dataset, method["name"])
            if key in means.index.droplevel("group"):
                line(panel, means[key], report, look, style.title(method["title"]))
        finish(panel, report, TITLES[metric])
    style.legend(figure)
    return figure


def line(axes: Axes, scores: pd.Series, report: dict, look: dict, label: str) -> None:
    """Faint dots for classes, and a line for the mean score of classes of similar frequency."""
    names = [f"class:{name}" for name in report["classes"]]
    values = 100 * scores.reindex(names).to_numpy(float)
    counts = np.asarray(report["counts"]["train"], float)
    kept = (counts > 0) & ~np.isnan(values)
    centres, means = binned(counts[kept], values[kept])
    axes.plot(counts[kept], values[kept], look["marker"], color=look["color"], ms=2.2, alpha=0.25, mew=0)
    axes.plot(centres, means, lw=1.4, ms=4, mec="white", mew=0.4, label=label, **look)


def binned(counts: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Geometric mean of counts and mean of values in bins of about equally many classes; ties share a bin."""
    edges = np.unique(np.quantile(counts, np.linspace(0, 1, min(BINS, len(counts)) + 1)))
    bins = np.searchsorted(edges, counts, side="right").clip(1, max(1, len(edges) - 1))
    table = pd.DataFrame({"bin": bins, "count": np.log(counts), "value": values})
    means = table.groupby("bin").mean()
    return np.exp(means["count"].to_numpy()), means["value"].to_numpy()


def finish(axes: Axes, report: dict, title: str) -> None:
    """Set the scales and titles of a panel."""
    style.counts(axes.xaxis)
    axes.set_ylim(-3, 103)
    axes.set_title(style.title(report["title"]))
    axes.set_xlabel("training examples of the class")
    axes.set_ylabel(f"test {title}")
    if not axes.lines:
        style.empty(axes)
