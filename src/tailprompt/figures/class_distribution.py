"""Examples of each class in training, head and tail apart (GLEE Figure 1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailprompt import records
from tailprompt.figures import style


def class_distribution(root: Path, spec: dict) -> Figure:
    """A panel for each data set."""
    reports = records.reports(root, spec)
    figure, axes = style.panels(len(reports), 2, 2.3)
    for panel, report in zip(axes, reports.values(), strict=True):
        bars(panel, report)
    return figure


def bars(axes: Axes, report: dict) -> None:
    """Classes from the most to the least frequent, on a log scale; head and tail as the tables score them."""
    counts = np.asarray(report["counts"]["train"])
    order = np.argsort(-counts, kind="stable")
    for group, colour, hatch in (("head", style.HEAD, ""), ("tail", style.TAIL, "/////")):
        ids = report["groups"]["test"][group]
        places = np.flatnonzero(np.isin(order, ids))
        look = {"width": 0.85, "color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
        axes.bar(places, counts[order][places], label=f"{group} ({len(ids)} classes)", **look)
    axes.set_yscale("log")
    axes.set_ylim(0.7)
    axes.set_title(style.title(report["title"]))
    axes.set_xlabel("class, from the most to the least frequent")
    axes.set_ylabel("training examples")
    axes.margins(x=0.01)
    axes.legend(loc="upper right")
