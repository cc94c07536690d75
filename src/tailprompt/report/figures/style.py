"""The style of figures: colours that colour-blind readers can distinguish, and marks that work in grey."""

from __future__ import annotations

import math

import matplotlib

matplotlib.use("agg")  # before pyplot: nothing is shown on a screen
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.axis import Axis  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: E402

from tailprompt.errors import BadInput  # noqa: E402
from tailprompt.report.sheet import greek  # noqa: E402

WIDTH = 6.3  # inches, the text width of an A4 page
HEAD, TAIL = "#0072B2", "#E69F00"  # Okabe and Ito's blue and orange, which differ in grey too
INK, FAINT = "#222222", "#999999"
# Okabe and Ito's colours (2008) without yellow and black, each with its own line and mark
LINES = [
    {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    {"color": "#CC79A7", "linestyle": ":", "marker": "D"},
    {"color": "#E69F00", "linestyle": (0, (5, 1)), "marker": "v"},
    {"color": "#56B4E9", "linestyle": (0, (3, 1, 1, 1)), "marker": "P"},
]
HATCHES = (
    "",
    "/////",
    ".....",
    "xxxxx",
    "-----",
    "|||||",
)  # of areas, because two of the colours look alike in grey
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


def looks(spec: dict) -> list[tuple[dict, dict]]:
    """(method, line and mark) for each method of a block; raises BadInput if there are too many methods."""
    if len(spec["methods"]) > len(LINES):
        raise BadInput(f"figure {spec['name']}: at most {len(LINES)} methods can be told apart")
    return list(zip(spec["methods"], LINES, strict=False))


def counts(axis: Axis) -> None:
    """Show numbers of examples on a log axis, written out: 1, 3, 10, 30, ... 1,000."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(10, subs=(1, 3)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def legend(figure: Figure) -> None:
    """Draw one legend above all panels, with each entry once."""
    entries = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries |= {
            label: handle for label, handle in zip(labels, handles, strict=True) if label not in entries
        }
    if entries:
        figure.legend(list(entries.values()), list(entries), loc="outside upper center", ncols=3)


def printable(name: str, place: int) -> str:
    """The name of a class if the font can print it, otherwise its id, as the font has no Chinese."""
    return name if all(ord(letter) < 0x2E80 for letter in name) else f"class {place}"


def title(text: str) -> str:
    """The title of a method or data set for a figure."""
    return printable(greek(text), 0)


def empty(axes: Axes, words: str = "not run") -> None:
    """Say in a panel that it has nothing to show."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=FAINT)
    axes.tick_params(bottom=False, labelbottom=False)
