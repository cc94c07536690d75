"""The score of each class against its number of training examples, for several methods."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailprompt.report import records
from tailprompt.report.figures import style
from tailprompt.tasks.metrics import CLASS

BINS = 7
TITLES = {"f1": "F1", "precision": "Precision", "recall": "Accuracy"}


def score_by_frequency(root: Path, spec: dict) -> Figure:
    """A panel for each data set, a line for each method; `metric` recall is the accuracy of a class."""
    titles = style.titles(spec)
    reports = records.reports(root, spec)
    runs, metric = records.runs(root, spec), spec.get("metric", "f1")
    figure, axes = style.panels(len(reports), 2, 2.5, sharey=True)
    for panel, (dataset, report) in zip(axes, reports.items(), strict=True):
        names = [f"{metric}/{CLASS}{name}" for name in report["classes"]]
        scores = records.scores(root, runs[runs.dataset == dataset], names).query("split == 'test'")
        scores = scores.assign(title=scores.method.map(titles), value=100 * scores.value)
        means = scores.groupby(["title", "score"], as_index=False).value.mean()
        means["count"] = means.score.map(pd.Series(report["counts"]["train"], names))
        draw(panel, means[means["count"] > 0], titles.values())
        finish(panel, report, TITLES[metric])
    style.legend(figure)
    return figure


def draw(axes: Axes, scores: pd.DataFrame, titles: Iterable[str]) -> None:
    """Faint dots for classes; the mean score of classes of like frequency as a line."""
    import seaborn as sns  # takes a second, and most figures do not need it

    if scores.empty:
        style.empty(axes)
        return
    lines = scores.groupby("title")[["count", "value"]].apply(binned).reset_index()
    places = {"x": "count", "y": "value", "ax": axes}
    dots = {"s": 6, "alpha": 0.25, "linewidth": 0, "legend": False, **style.looks(titles, marks=True)}
    sns.scatterplot(scores, **places, **dots)
    line = {"linewidth": 1.4, "markersize": 4, **style.looks(titles, marks=True, dashes=True)}
    sns.lineplot(lines, **places, **line)


def binned(scores: pd.DataFrame) -> pd.DataFrame:
    """Geometric mean of counts and mean of values in bins of about as many classes; ties share a bin."""
    counts = scores["count"].to_numpy()
    edges = np.unique(np.quantile(counts, np.linspace(0, 1, min(BINS, len(counts)) + 1)))
    bins = np.searchsorted(edges, counts, side="right").clip(1, max(1, len(edges) - 1))
    means = scores.assign(count=np.log(counts)).groupby(bins).mean()
    return means.assign(count=np.exp(means["count"]))


def finish(axes: Axes, report: dict, title: str) -> None:
    """Set the scales and titles of a panel."""
    style.counts(axes.xaxis)
    axes.set_ylim(-3, 103)
    axes.set_title(style.title(report["title"]))
    axes.set_xlabel("training examples of the class")
    axes.set_ylabel(f"{title} on test")
