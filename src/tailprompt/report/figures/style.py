"""The style of figures: colours that colour-blind readers can distinguish, and marks that work in grey."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

import matplotlib
import pandas as pd

matplotlib.use("agg")  # before pyplot: nothing is shown on a screen
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.axis import Axis  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.font_manager import findfont, get_font  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: E402

from tailprompt.errors import BadInput  # noqa: E402
from tailprompt.report.sheet import greek  # noqa: E402
from tailprompt.tasks import metrics  # noqa: E402

WIDTH = 6.3  # inches, the text width of an A4 page
HEAD, TAIL = "#0072B2", "#E69F00"  # Okabe and Ito's blue and orange, which differ in grey too
INK, FAINT = "#222222", "#999999"
# Okabe and Ito's colours (2008) without yellow and black, each with its own line and mark
LINES = [
    {"color": "#0072B2", "dashes": "", "marker": "o"},
    {"color": "#D55E00", "dashes": (3.7, 1.6), "marker": "s"},
    {"color": "#009E73", "dashes": (6.4, 1.6, 1, 1.6), "marker": "^"},
    {"color": "#CC79A7", "dashes": (1, 1.6), "marker": "D"},
    {"color": "#E69F00", "dashes": (5, 1), "marker": "v"},
    {"color": "#56B4E9", "dashes": (3, 1, 1, 1, 1, 1), "marker": "P"},
]
HATCHES = ("", "/////", ".....", "xxxxx", "-----", "|||||")  # of areas, as two colours look alike in grey
SETTINGS = {
    "font.family": "DejaVu Sans",  # ships with matplotlib, so it is the same everywhere
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # embeds whole fonts as TrueType
    "figure.constrained_layout.use": True,
    "hatch.linewidth": 0.4,
}


def panels(count: int, across: int, height: float, **shared) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, at most `across` in a row, in even rows of `height` inches."""
    rows = max(1, math.ceil(count / across))
    columns = max(1, math.ceil(count / rows))
    width = WIDTH if columns > 1 else WIDTH * 0.75
    figure, grid = plt.subplots(rows, columns, figsize=(width, rows * height), squeeze=False, **shared)
    axes = list(grid.flat)
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]


def titles(spec: dict) -> dict[str, str]:
    """The title of each method of a figure's block; raises BadInput for more than can be told apart."""
    if len(spec["methods"]) > len(LINES):
        raise BadInput(f"figure {spec['name']}: at most {len(LINES)} methods can be told apart")
    return {method["name"]: title(method["title"]) for method in spec["methods"]}


def looks(titles: Iterable[str], *, marks: bool = False, dashes: bool = False) -> dict:
    """What seaborn is told, so that each title of the column `title` has a colour of its own.

    marks, dashes: and a mark, and a line.
    """
    own = dict(zip(titles, LINES, strict=False))
    told = {"hue": "title", "hue_order": [*own], "palette": {name: own[name]["color"] for name in own}}
    if marks:
        found = {name: own[name]["marker"] for name in own}
        told |= {"style": "title", "style_order": [*own], "markers": found}
    if dashes:
        told["dashes"] = {name: own[name]["dashes"] for name in own}
    return told


def curves(axes: Axes, points: pd.DataFrame, x: str, looks: dict, *, log: bool = False) -> None:
    """A line for each title, of means of `value` over seeds with bars of one SD, and a tick at each x.

    log: whether the x axis is logarithmic in any case, and not only where x grows more than fourfold.
    """
    import seaborn as sns  # takes a second, and most figures do not need it

    if points.empty:
        empty(axes)
        return
    spread = {"errorbar": "sd", "err_style": "bars", "err_kws": {"elinewidth": 0.6, "capsize": 2}}
    sns.lineplot(points, x=x, y="value", ax=axes, linewidth=1, markersize=5, **spread, **looks)
    places = sorted(set(points[x].round()))
    if log or places[-1] > 4 * places[0]:
        axes.set_xscale("log", base=2)
    axes.set_xticks(places, labels=[f"{place:,.0f}" for place in places])
    axes.minorticks_off()


def counts(axis: Axis) -> None:
    """Show numbers of examples on a log axis, written out: 1, 3, 10, 30, ... 1,000."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(10, subs=(1, 3)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def legend(figure: Figure) -> None:
    """One legend above all panels in the place of their own, each entry once, in as many columns as fit."""
    entries = {}
    for axes in figure.axes:
        if own := axes.get_legend():
            own.remove()
        handles, labels = axes.get_legend_handles_labels()
        entries |= {
            label: handle for label, handle in zip(labels, handles, strict=True) if label not in entries
        }
    look = {"loc": "outside upper center", "handlelength": 2.8}  # room for the dashes beside the mark
    for columns in range(3, 0, -1) if entries else ():
        made = figure.legend(list(entries.values()), list(entries), ncols=columns, **look)
        if columns == 1 or made.get_window_extent().width < 0.97 * figure.bbox.width:
            return
        made.remove()


@cache
def letters() -> frozenset[int]:
    """The letters of the font, which has no Chinese, among others."""
    return frozenset(get_font(findfont(SETTINGS["font.family"])).get_charmap())


def prints(name: str) -> bool:
    """Whether the font can print a name."""
    return letters().issuperset(map(ord, name))


def printable(name: str, place: int) -> str:
    """The name of a class if the font can print it, otherwise its id. Dollars make no formula of it."""
    return name.replace("$", r"\$") if prints(name) else f"class {place}"


def title(text: str) -> str:
    """The title of a method or data set for a figure."""
    return printable(greek(text), 0)


def tested(score: str) -> str:
    """The words at an axis of a score on test: `f1/tail` is Tail F1 on test."""
    return f"{metrics.title(score)} on test"


def empty(axes: Axes, words: str = "not run") -> None:
    """Say in a panel that it has nothing to show."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=FAINT)
    axes.tick_params(bottom=False, labelbottom=False, left=False, labelleft=False)
