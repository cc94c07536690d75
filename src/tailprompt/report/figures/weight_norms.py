"""The norms of the class vectors by class frequency (GLEE Figure 3)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailprompt.report import records, trained
from tailprompt.report.figures import style


def weight_norms(root: Path, spec: dict) -> Figure:
    """A panel for each data set and method, all on one scale if `normalised`."""
    runs = records.runs(root, spec)
    reports = records.reports(root, spec)
    cells = [(dataset, method) for dataset in reports for method in spec["methods"]]
    figure, axes = style.panels(len(cells), 4, 1.45, sharey=bool(spec.get("normalised")))
    for panel, (dataset, method) in zip(axes, cells, strict=True):
        here = runs[(runs.dataset == dataset) & (runs.method == method["name"]) & runs.there]
        curve(panel, here, reports[dataset], normalised=spec.get("normalised", False))
        name = f"{reports[dataset]['title']}: " if len(reports) > 1 else ""
        panel.set_title(style.title(name + method["title"]), fontsize=6.5)
    figure.supxlabel("class, from the most to the least frequent in training", fontsize=7.5)
    figure.supylabel("norm / mean norm" if spec.get("normalised") else "norm", fontsize=7.5)
    style.legend(figure)
    return figure


def curve(axes: Axes, runs: pd.DataFrame, report: dict, *, normalised: bool) -> None:
    """Dots for classes (mean over seeds), a line for their running mean, and the slope against frequency."""
    if runs.empty:
        style.empty(axes)
        return
    counts = np.asarray(report["counts"]["train"])
    order = np.argsort(-counts, kind="stable")
    norms = np.stack([trained.norms(folder) for folder in runs.folder])
    norms = norms / norms.mean(axis=1, keepdims=True) if normalised else norms
    values = norms.mean(axis=0)[order]
    head = np.isin(order, report["groups"]["test"]["head"])
    places = 1 + np.arange(len(order))
    axes.plot(places[head], values[head], "s", ms=2.4, color=style.HEAD, mew=0, label="head class")
    axes.plot(places[~head], values[~head], "o", ms=2.2, color=style.TAIL, mew=0, label="tail class")
    window = max(3, len(order) // 8) | 1
    smooth = pd.Series(values).rolling(window, center=True, min_periods=window // 2 + 1).mean()
    axes.plot(places, smooth, color=style.INK, lw=1.0, label="running mean")
    kept = counts > 0
    slope = np.polyfit(np.log(counts[kept]), np.log(norms.mean(axis=0)[kept]), 1)[0]
    words = f"slope {slope:+.3f}".replace("-", "\u2212")
    axes.text(0.97, 0.95, words, transform=axes.transAxes, ha="right", va="top", fontsize=6.5)
    if normalised:
        axes.axhline(1, color=style.FAINT, lw=0.6, ls=":", zorder=0)
