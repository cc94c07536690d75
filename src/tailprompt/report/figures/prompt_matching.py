"""Which group prompts the test images of a class match (LPT Figures 4 and 6)."""

from __future__ import annotations

from math import log2
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailprompt.report import matching, records
from tailprompt.report.bootstrap import stream
from tailprompt.report.figures import style

GROUPS = ("many", "medium", "few")
BARS = [
    {"label": "best prompt", "color": style.HEAD, "edgecolor": "white"},
    {"label": "second best", "color": style.TAIL, "hatch": "/////", "edgecolor": "white"},
    {"label": "all others", "color": "#DDDDDD", "edgecolor": "white"},
]


def prompt_matching(root: Path, spec: dict) -> Figure:
    """A panel for each data set and method, of the first seed only, as prompts differ between runs."""
    runs, reports = records.runs(root, spec), records.reports(root, spec)
    cells = [(dataset, method) for dataset in reports for method in spec["methods"]]
    each = spec.get("classes_per_group", 2)
    figure, axes = style.panels(len(cells), 2, 0.9 + 0.17 * 3 * each)
    for panel, (dataset, method) in zip(axes, cells, strict=True):
        here = runs[(runs.dataset == dataset) & (runs.method == method["name"]) & runs.there]
        name = f"{reports[dataset]['title']}: " if len(reports) > 1 else ""
        panel.set_title(style.title(name + method["title"]))
        if here.empty:
            style.empty(panel)
        else:
            matches(panel, here.iloc[0], reports[dataset], each)
    style.legend(figure)
    return figure


def matches(axes: Axes, run: pd.Series, report: dict, each: int) -> None:
    """A bar for each drawn class, and in the title how evenly the whole pool is used."""
    table, pool = records.prompts(run.folder), run.record["settings"]["pool"]
    chosen = np.stack(table.prompts)
    shares = matching.by_class(chosen, table.label.to_numpy(), len(report["classes"]), pool)
    classes = drawn(report, each)
    ids, best = matching.best_two(shares[classes])
    parts = [best[:, 0], best[:, 1], 1 - best.sum(axis=1)]
    left = np.zeros(len(classes))
    for look, part in zip(BARS, parts, strict=True):
        axes.barh(range(len(classes)), 100 * part, 0.75, 100 * left, linewidth=0, **look)
        left += part
    for row, (first, second) in enumerate(ids):
        axes.text(1.5, row, f"#{first}", va="center", color="white", fontsize=5.5)
        axes.text(100 * best[row, 0] + 1.5, row, f"#{second}", va="center", color=style.INK, fontsize=5.5)
    axes.set_yticks(range(len(classes)), [row_title(report, c) for c in classes], fontsize=6)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    bits = matching.entropy(matching.usage(chosen, pool))
    axes.set_title(f"{axes.get_title()} (pool used: {bits:.1f} of {log2(pool):.1f} bits)")
    axes.set_xlabel("share of choices, %")


def drawn(report: dict, each: int) -> list[int]:
    """Random classes with test examples, `each` of many, medium and few, the same on every machine."""
    groups, counts = report["groups"]["test"], np.asarray(report["counts"]["test"])
    classes = []
    for group in GROUPS:
        ids = [c for c in groups[group] if counts[c]]
        picks = stream(report["dataset"], group).permutation(len(ids))[:each]
        classes += [ids[pick] for pick in sorted(picks)]
    return classes


def row_title(report: dict, place: int) -> str:
    """The title of a row, as `few: zinc`."""
    group = next(name for name in GROUPS if place in report["groups"]["test"][name])
    return f"{group}: {style.printable(report['classes'][place], place)}"
