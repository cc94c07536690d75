"""The claims of a paper, a line each: the printed effect, ours with its 95 % interval, and the verdict.

It is drawn from the table of claims that `tabulate` wrote. Colour, mark and word all tell the verdict.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from tailprompt.report.figures import style
from tailprompt.report.sheet import greek, number
from tailprompt.report.tables.claims_sheet import DECIDED, MEANING, overall, places

WIDTHS = (3.55, 3.15, 1.2)  # inches of the sentences, of the panel, and of our effect with the verdict
LETTERS, BOUND = 60, "\u00a0"  # of a line of a sentence; a space at which it does not break
LINE, GAP = 0.145, 0.075  # inches of a line of words, and between claims
TOP, ABOVE, BELOW = 0.52, 0.24, 0.3  # inches of the heading, of the title of a panel, and of its axis
EDGE = 0.06  # inches at the left
BEYOND = 0.4, 3  # how far an axis goes beyond effects: in their range, in the median arm of their intervals
LOOKS = {  # verdict -> mark; Okabe and Ito's blue and vermilion, which differ in grey too
    "holds": {"color": "#0072B2", "marker": "o", "markerfacecolor": "#0072B2", "markersize": 5.5},
    "fails": {"color": "#D55E00", "marker": "X", "markerfacecolor": "#D55E00", "markersize": 6.5},
    "undecided": {"color": "#666666", "marker": "s", "markerfacecolor": "white", "markersize": 4.5},
}
PRINTED = {"color": style.INK, "marker": "D", "markerfacecolor": "none", "markersize": 4.5, "linestyle": ""}
APART = 0.042  # inches from the middle of a line to the printed effect above and to ours below
NOT_RUN, GREY = "not run", "#777777"
SIDE = "#E8EEF4"  # where a claim would hold
COUNTED = {  # verdict -> its words for one claim and for several
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "undecided": ("undecided", "undecided"),
    NOT_RUN: ("not run", "not run"),
}


def claims(root: Path, spec: dict) -> Figure:
    """A panel for each unit of effects; a claim with neither a printed effect nor ours is only counted."""
    table = read(root / "tables" / spec["paper"] / f"{spec['table']}.csv")
    drawn = table[table.ours.notna() | table.reported.notna()]
    parts = [part for _, part in drawn.groupby("unit", sort=False)]
    sizes = [ABOVE + sum(map(tall, part.words)) + BELOW for part in parts]
    figure = style.plt.figure(figsize=(sum(WIDTHS), TOP + sum(sizes)))
    figure.set_layout_engine("none")
    heading(figure, table, len(table) - len(drawn))
    top = TOP
    for part, size in zip(parts, sizes, strict=True):
        panel(figure, part, top + ABOVE)
        top += size
    return figure


def read(file: Path) -> pd.DataFrame:
    """The claims over all data sets, with `words`, the lines of each sentence."""
    table = overall(file)
    table = table.reindex(columns=[*table, *({"ours", "low", "high"} - {*table})])
    return table.assign(words=[sentence(one) for one in table.itertuples()])


def sentence(claim) -> list[str]:
    """What a claim says, and its section, in lines; the id of one that the font cannot print."""
    says = greek(claim.says) if style.prints(claim.says) else claim.id
    section = claim.section.replace(" (", ", ").rstrip(")").replace(" ", BOUND)
    return textwrap.wrap(f"{says}{BOUND}({section})", LETTERS, break_on_hyphens=False)


def tall(words: list[str]) -> float:
    """The height of a claim in inches."""
    return LINE * len(words) + GAP


def write(figure: Figure, x: float, y: float, text: str, **look) -> None:
    """Words at a place in inches from the left and the top."""
    width, height = figure.get_size_inches()
    figure.text(x / width, 1 - y / height, text, va="center", **look)


def panel(figure: Figure, part: pd.DataFrame, top: float) -> None:
    """The claims whose effects have one unit. top: inches above the first. The y axis is in inches too."""
    ends = np.cumsum([tall(words) for words in part.words])
    width, height = figure.get_size_inches()
    place = (WIDTHS[0] / width, 1 - (top + ends[-1]) / height, WIDTHS[1] / width, ends[-1] / height)
    axes = figure.add_axes(place, xlim=limits(part), ylim=(ends[-1], 0), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.axvline(0, color=style.INK, lw=0.6, zorder=1)
    for end, claim in zip(ends, part.itertuples(), strict=True):
        size = tall(claim.words)
        side(axes, claim, end - size, size)
        effects(axes, claim, end - size / 2)
        sides(figure, claim, top + end - size / 2)
    unit = part.unit.iloc[0]
    write(figure, EDGE, top - ABOVE / 2, MEANING.get(unit, f"Effects in {unit}").rstrip("."), weight="bold")


def limits(part: pd.DataFrame) -> tuple[float, float]:
    """The ends of the axis: all effects, zero, and intervals, but for long ones that would squeeze them."""
    values = [0.0, *part.ours.dropna(), *part.reported.dropna()]
    low, high = min(values), max(values)
    arm = (part.high - part.low).median() / 2
    reach = max(BEYOND[0] * (high - low), 0 if pd.isna(arm) else BEYOND[1] * arm) or 1.0
    left = min([low, *part.low.dropna().clip(lower=low - reach)])
    right = max([high, *part.high.dropna().clip(upper=high + reach)])
    margin = 0.04 * ((right - left) or 1.0)
    return left - margin, right + margin


def side(axes: Axes, claim, top: float, size: float) -> None:
    """Shade where the claim holds: above its margin, below it, or between minus and plus of it."""
    low, high = axes.get_xlim()
    margin = 0.0 if pd.isna(claim.margin) else claim.margin
    holds = {"greater": (margin, high), "not_greater": (low, margin), "equal": (-margin, margin)}
    start, end = holds[claim.direction]
    axes.add_patch(Rectangle((start, top + GAP / 4), end - start, size - GAP / 2, color=SIDE, lw=0, zorder=0))


def effects(axes: Axes, claim, y: float) -> None:
    """The printed effect, and ours with its interval, whose ends beyond the axis are arrows."""
    if pd.notna(claim.ours):
        look, below = LOOKS[claim.verdict], y + APART
        if pd.notna(claim.low):
            low, high = axes.get_xlim()
            axes.plot(np.clip([claim.low, claim.high], low, high), [below] * 2, color=look["color"], lw=1.3)
            for end, beyond, arrow in ((low, claim.low < low, "<"), (high, claim.high > high, ">")):
                if beyond:
                    axes.plot(end, below, arrow, color=look["color"], ms=4, clip_on=False)
        axes.plot(claim.ours, below, linestyle="", zorder=3, **look)
    if pd.notna(claim.reported):
        axes.plot(claim.reported, y - APART, zorder=4, **PRINTED)


def sides(figure: Figure, claim, y: float) -> None:
    """The sentence of a claim at the left; our effect and the verdict at the right."""
    run = claim.verdict in LOOKS
    colour = LOOKS[claim.verdict]["color"] if run else style.FAINT
    first = y - LINE * (len(claim.words) - 1) / 2
    for place, words in enumerate(claim.words):
        write(figure, EDGE, first + LINE * place, words, color=style.INK if run else GREY)
    right = WIDTHS[0] + WIDTHS[1]
    write(figure, right + 0.5, y, number(claim.ours, places(claim), signed=True), ha="right", color=colour)
    weight = "bold" if claim.verdict in DECIDED else "normal"
    write(figure, right + 0.58, y, claim.verdict, color=colour, weight=weight)


def heading(figure: Figure, table: pd.DataFrame, left_out: int) -> None:
    """How many claims there are of each verdict, and what the marks mean."""
    found = table.verdict.value_counts()
    counts = ", ".join(
        f"{found[name]} {words[int(found[name] > 1)]}" for name, words in COUNTED.items() if name in found
    )
    left = f" ({left_out} of them without a printed effect, not drawn)" if left_out else ""
    noun = "claim" if len(table) == 1 else "claims"
    write(figure, EDGE, 0.14, f"{len(table)} {noun}: {counts}{left}", weight="bold", size=8.5)
    first, *others = LOOKS
    names = [f"ours with 95% interval: {first}", *others]
    marks = [(name, {**look, "linewidth": 1.3}) for name, look in zip(names, LOOKS.values(), strict=True)]
    entries = [
        *(Line2D([], [], label=label, **look) for label, look in [*marks, ("as printed", PRINTED)]),
        Patch(color=SIDE, label="where the claim holds"),
    ]
    place = {"loc": "center left", "bbox_to_anchor": (0, 1 - 0.38 / figure.get_figheight())}
    figure.legend(handles=entries, ncols=len(entries), columnspacing=1.4, handletextpad=0.6, **place)
