"""A test score of methods side by side on each data set (PPT Figure 2)."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from tailprompt.report import records
from tailprompt.report.figures import style

SCORE = "accuracy/all"


def score_bars(root: Path, spec: dict) -> Figure:
    """A group of bars for each data set: means over seeds, with error bars of one SD."""
    import seaborn as sns  # takes a second, and most figures do not need it

    reports = records.reports(root, spec)
    score = spec.get("score", SCORE)
    _, table, _ = records.taken(root, spec, [score])
    table = table[(table.split == "test") & (table.score == score)]
    titles = style.titles(spec)
    sets = {name: style.title(report["title"]) for name, report in reports.items()}
    points = table.assign(
        set=table.dataset.map(sets), title=table.method.map(titles), value=100 * table.value
    )
    figure, (axes,) = style.panels(1, 1, 2.8)
    bars = {"order": [*sets.values()], "saturation": 1, **style.looks(titles.values())}
    ink = {"edgecolor": style.INK, "linewidth": 0.5, "err_kws": {"color": style.INK, "linewidth": 1}}
    sns.barplot(points, x="set", y="value", errorbar="sd", capsize=0.15, ax=axes, **bars, **ink)
    shown, _ = axes.get_legend_handles_labels()
    for group, handle, hatch in zip(axes.containers, shown, style.HATCHES, strict=False):
        style.plt.setp([*group, handle], hatch=hatch)
    axes.set_xlabel("")
    axes.set_ylabel(style.tested(score))
    if table.empty:
        style.empty(axes)
    style.legend(figure)
    return figure
