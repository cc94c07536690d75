"""The features that the classifier's last layer gets for a head class and a tail class (GLEE Figure 4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailprompt.errors import BadInput
from tailprompt.files import read_parquet
from tailprompt.report import records
from tailprompt.report.figures import style


def features(root: Path, spec: dict) -> Figure:
    """A row for each class and a column for each method: boxes of the first features of test examples."""
    reports = records.reports(root, spec)
    runs = records.runs(root, spec)
    rows = [(dataset, name) for dataset in reports for name in spec["classes"]]
    wide = max(1, len(spec["methods"]))
    figure, axes = style.panels(len(rows) * wide, wide, 1.7, sharex=True, sharey="col")
    panels = iter(axes)
    for row, (dataset, name) in enumerate(rows):
        place = class_id(reports[dataset], name, spec)
        for method in spec["methods"]:
            axes = next(panels)
            here = runs[(runs.dataset == dataset) & (runs.method == method["name"]) & runs.there]
            boxes(axes, vectors(here, place)[:, : spec.get("features", 10)], group(reports[dataset], place))
            axes.set_title(style.title(method["title"]) if row == 0 else "", fontsize=7)
            if method is spec["methods"][0]:
                axes.set_ylabel(row_title(reports[dataset], place))
    figure.supxlabel("feature", fontsize=7.5)
    return figure


def class_id(report: dict, name: str, spec: dict) -> int:
    """The id of a class that the figure names; raises BadInput if the data set has no such class."""
    if name not in report["classes"]:
        raise BadInput(
            f"figure {spec['name']}: '{name}' is no class of {report['dataset']}; see its report's classes"
        )
    return report["classes"].index(name)


def group(report: dict, place: int) -> str:
    """Whether a class is in the head or in the tail."""
    return "head" if place in report["groups"]["test"]["head"] else "tail"


def row_title(report: dict, place: int) -> str:
    """The title of a row, as `head: fonts (120 in train)`."""
    name = style.printable(report["classes"][place], place)
    return f"{group(report, place)}: {name}\n({report['counts']['train'][place]:,} in train)"


def vectors(runs: pd.DataFrame, place: int) -> np.ndarray:
    """Features of the class's test examples in these runs, `[examples, width]`."""
    columns = ("split", "label", "vector")
    tables = [read_parquet(folder / "features.parquet", *columns) for folder in runs.folder]
    parts = [table[(table.split == "test") & (table.label == place)] for table in tables]
    kept = [np.stack(part.vector) for part in parts if len(part)]
    return np.concatenate(kept) if kept else np.empty((0, 0))


def boxes(axes: Axes, values: np.ndarray, group: str) -> None:
    """A box for each feature: quartiles, median, whiskers to 5 and 95 percent; a line at zero."""
    if not values.size:
        style.empty(axes)
        return
    colour = style.HEAD if group == "head" else style.TAIL
    axes.axhline(0, color=style.FAINT, lw=0.6, zorder=0)
    axes.boxplot(
        values,
        whis=(5, 95),
        showfliers=False,
        widths=0.6,
        patch_artist=True,
        boxprops={"facecolor": colour, "alpha": 0.75, "lw": 0.5, "hatch": "" if group == "head" else "/////"},
        medianprops={"color": style.INK, "lw": 1.2},
        whiskerprops={"lw": 0.6},
        capprops={"lw": 0.6},
    )
    ticks = range(1, values.shape[1] + 1)
    axes.set_xticks(ticks, [str(tick) if tick % 3 == 1 else "" for tick in ticks])
