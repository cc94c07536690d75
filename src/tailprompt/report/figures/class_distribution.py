"""The number of training examples of each class, in head and tail (GLEE Figure 1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailprompt.errors import counted
from tailprompt.report import records
from tailprompt.report.figures import style


def class_distribution(root: Path, spec: dict) -> Figure:
    """A panel for each data set."""
    reports = records.reports(root, spec)
    figure, axes = style.panels(len(reports), 2, 2.3)
    for panel, report in zip(axes, reports.values(), strict=True):
        bars(panel, report)
    return figure


def bars(axes: Axes, report: dict) -> None:
    """Classes from the most to the least frequent on a log scale, with the head and tail of the tables."""
    counts = np.asarray(report["counts"]["train"])
    order = np.argsort(-counts, kind="stable")
    groups = {group: report["groups"]["test"][group] for group in ("head", "tail")}
    groups["not in test"] = sorted(set(range(len(counts))) - {*groups["head"], *groups["tail"]})
    looks = zip(groups.items(), (style.HEAD, style.TAIL, style.FAINT), ("", "/////", "....."), strict=True)
    for (group, ids), colour, hatch in looks:
        places = np.flatnonzero(np.isin(order, ids))
        if len(places):
            look = {"width": 0.85, "color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
            axes.bar(
                1 + places, counts[order][places], label=f"{group} ({counted(len(ids), 'class')})", **look
            )
    style.counts(axes.yaxis)
    axes.set_ylim(0.7)
    axes.set_title(style.title(report["title"]))
    axes.set_xlabel("class, from the most to the least frequent")
    axes.set_ylabel("training examples")
    axes.margins(x=0.01)
    axes.legend(loc="upper right")
