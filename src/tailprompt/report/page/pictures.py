"""The pictures of the page, as SVG: the ranking beside its cost, groups of classes, confusions, more data."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter

from tailprompt.errors import brief
from tailprompt.report.figures import style
from tailprompt.report.page import evidence
from tailprompt.report.page.data_words import LONG
from tailprompt.report.page.evidence import More, Row, Worst
from tailprompt.report.sheet import number
from tailprompt.tasks import metrics

LOOKS = {  # apart in grey too
    evidence.LEADS: style.HEAD,
    evidence.NEAR: "#56B4E9",
    evidence.WORSE: "#D9D9D9",
    evidence.OPEN: "#FFFFFF",
}
EDGE = {"edgecolor": style.INK, "linewidth": 0.4}
ON_SCREEN = 1.25  # the width of a picture in a window, in that on paper
LEAST = 40  # em, below which words are too small, so that the page scrolls
SALT = {"svg.hashsalt": "tailprompt", "svg.fonttype": "path"}  # the same bytes each time, and on any machine


def svg(figure: Figure) -> str:
    """The figure as an element of an HTML page."""
    text, width = io.StringIO(), figure.get_figwidth()
    with style.plt.rc_context({**style.SETTINGS, **SALT}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    style.plt.close(figure)
    look = f"max-width: {ON_SCREEN * width:.1f}in; min-width: min({LEAST}em, {width:.1f}in)"
    return f'<svg style="{look}"' + text.getvalue().partition("<svg")[2]


def colour(row: Row, rows: list[Row]) -> str:
    """Blue for the leader, light blue for what is not clearly worse, light grey for what is; white without
    a verdict."""
    return LOOKS[evidence.verdict(row, rows)]


def ranking(rows: list[Row], score: str) -> Figure:
    """Bars of the score on test with a dot a seed, and the score against the seconds of a run."""
    with style.plt.rc_context(style.SETTINGS):
        height = 0.8 + 0.32 * len(rows)
        figure, (bars, cost) = style.plt.subplots(
            1, 2, figsize=(style.WIDTH * 1.25, max(2.4, height)), width_ratios=(3, 2)
        )
        places = np.arange(len(rows))[::-1]
        for place, row in zip(places, rows, strict=True):
            mean = row.scores[score]
            bars.barh(place, mean, color=colour(row, rows), height=0.62, **EDGE)
            bars.plot(row.seeds, [place] * len(row.seeds), "o", ms=2.5, color=style.INK, alpha=0.7)
            bars.text(max(mean, *row.seeds), place, f"  {number(mean)}", va="center", color=style.INK)
            cost.plot(row.seconds, mean, "o", ms=6, color=colour(row, rows), mec=style.INK, mew=0.4)
        bars.set_yticks(places, [style.title(row.title) for row in rows])
        bars.set_xlabel(f"{style.tested(score)}, points (a dot a seed)")
        cost.set_xscale("log")
        cost.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        cost.xaxis.set_major_formatter("{x:,g}")
        cost.xaxis.set_minor_formatter(NullFormatter())
        cost.margins(0.25)
        cost.set_xlabel("seconds of a training run")
        cost.set_ylabel(style.tested(score))
        named_beside(cost, rows, score)
        there = {colour(row, rows) for row in rows}
        patches = [Patch(facecolor=look, label=says, **EDGE) for says, look in LOOKS.items() if look in there]
        figure.legend(handles=patches, loc="outside upper left", ncols=len(patches))
    return figure


def named_beside(axes: Axes, rows: list[Row], score: str) -> None:
    """The titles of methods in a column right of the axes, in the order of their points, each with a line."""
    ordered = sorted(rows, key=lambda row: row.scores[score])
    for place, row in zip(
        np.linspace(0.04, 0.96, len(rows)) if len(rows) > 1 else [0.5], ordered, strict=True
    ):
        axes.annotate(
            style.title(row.title),
            (row.seconds, row.scores[score]),
            (1.04, place),
            textcoords="axes fraction",
            fontsize=6,
            va="center",
            arrowprops={"arrowstyle": "-", "color": style.FAINT, "lw": 0.5, "shrinkB": 3},
        )


def by_group(rows: list[Row], metric: str, names: list[str]) -> Figure:
    """A panel of bars for each group of classes."""
    with style.plt.rc_context(style.SETTINGS):
        figure, axes = style.plt.subplots(
            1, len(names), figsize=(style.WIDTH * 1.25, 0.8 + 0.26 * len(rows)), sharey=True, squeeze=False
        )
        places = np.arange(len(rows))[::-1]
        for panel, name in zip(axes[0], names, strict=True):
            values = [row.scores[f"{metric}/{name}"] for row in rows]
            panel.barh(places, values, color=[colour(row, rows) for row in rows], height=0.62, **EDGE)
            for place, value in zip(places, values, strict=True):
                panel.text(value, place, f" {number(value)}", va="center")
            panel.set_title(metrics.GROUPS[name])
            panel.set_xlim(0, max(1, max(values) * 1.3))
            panel.set_yticks(places, [style.title(row.title) for row in rows])
    return figure


def confusion(found: list[Worst], classes: list[str]) -> Figure:
    """Of each of the worst classes the shares of its rows that are taken for others. classes: all names."""
    columns = list(dict.fromkeys(c for one in found for c, _ in one.taken))
    shares = np.zeros((len(found), len(columns)))
    for line, one in enumerate(found):
        for c, share in one.taken:
            shares[line, columns.index(c)] = share
    with style.plt.rc_context(style.SETTINGS):
        size = (1.6 + 0.34 * max(1, len(columns)), 1.2 + 0.24 * len(found))
        figure, axes = style.plt.subplots(figsize=size)
        axes.imshow(
            shares if columns else np.zeros((len(found), 1)), cmap="Blues", vmin=0, vmax=1, aspect="auto"
        )
        for line, column in zip(*np.nonzero(shares), strict=True):
            share = shares[line, column]
            ink = "white" if share > 0.5 else style.INK
            axes.text(column, line, f"{100 * share:.0f}", ha="center", va="center", color=ink, fontsize=6)
        names = [printable(classes, c) for c in columns]
        axes.set_xticks(range(len(columns)), names, rotation=60, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(found)), [printable(classes, one.id) for one in found])
        axes.set_xlabel("taken for, % of its test rows")
        axes.spines[:].set_visible(False)
    return figure


def printable(classes: list[str], c: int) -> str:
    """The name of a class in a picture, with its number where it is too long to stand there whole."""
    if c >= len(classes):
        return "no class"
    name = style.printable(brief(classes[c], LONG), c)
    return f"{name} (class {c})" if len(classes[c]) > LONG and style.prints(classes[c]) else name


def learning(data: More, rows: list[Row], score: str) -> Figure:
    """The score of the best methods against the number of training rows."""
    with style.plt.rc_context(style.SETTINGS):
        figure, (axes,) = style.panels(1, 1, 2.5)
        there = [row for row in rows if row.method in {*data.points.method}]
        for place, row in enumerate(there):
            line(axes, data, row, place)
        style.counts(axes.xaxis)
        sizes = sorted(set(data.points.rows))
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("training rows")
        axes.set_ylabel(style.tested(score))
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def line(axes: Axes, data: More, row: Row, place: int) -> None:
    """The line of one method; where the looks of lines are all taken, its mark is hollow."""
    own, look = data.points[data.points.method == row.method], style.LINES[place % len(style.LINES)]
    dashes = {"dashes": look["dashes"]} if look["dashes"] else {}
    hollow = {"markerfacecolor": "white"} if place >= len(style.LINES) else {}
    label = style.title(row.title)
    axes.plot(
        own.rows, own.value, color=look["color"], marker=look["marker"], ms=4, label=label, **dashes, **hollow
    )
