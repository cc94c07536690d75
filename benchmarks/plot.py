"""The figure of a comparison: speeds beside the baseline, and losses."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from tailprompt.report.figures.style import FAINT, LINES, SETTINGS, WIDTH, plt

MARKS = ["o", "s", "^", "D", "v", "P", "X", "*", "<"]  # which are told apart in grey
THICK = [4, 2, 0.8]  # lines, so that those below are seen


def draw(table: pd.DataFrame, losses: pd.DataFrame, stem: Path) -> None:
    """Write the figure as PDF and PNG."""
    with plt.rc_context(SETTINGS):
        figure, (left, right) = plt.subplots(1, 2, figsize=(1.3 * WIDTH, 3.6), width_ratios=[3, 2])
        speeds(table.dropna(subset="ratio"), left)
        curves(losses, right)
        for kind in ("pdf", "png"):
            figure.savefig(stem.with_suffix(f".{kind}"), dpi=200)
        plt.close(figure)


def speeds(table: pd.DataFrame, axes: Axes) -> None:
    """A line a part, a mark a system."""
    axes.set(title="Speed beside Trainer or a plain loop with AMP", xlabel="times as fast", ylabel="")
    if table.empty:
        return
    order = table["system"].unique()
    colours = sns.color_palette("colorblind", len(order))
    sns.scatterplot(
        table,
        x="ratio",
        y="part",
        hue="system",
        style="system",
        palette=colours,
        markers=MARKS[: len(order)],
        s=36,
        ax=axes,
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1, color=FAINT, linewidth=0.6, zorder=0)
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
    axes.set(xlabel="times as fast", ylabel="")
    sns.move_legend(axes, "upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, title=None)


def curves(losses: pd.DataFrame, axes: Axes) -> None:
    """A line a system, which must lie on each other."""
    axes.set(title="Loss, same weights and batches", xlabel="step", ylabel="")
    if losses.empty:
        return
    long = losses.melt(ignore_index=False, var_name="system", value_name="loss").reset_index()
    own = dict(zip(losses, LINES, strict=False))
    sns.lineplot(
        long,
        x="step",
        y="loss",
        hue="system",
        style="system",
        palette={name: look["color"] for name, look in own.items()},
        dashes={name: look["dashes"] for name, look in own.items()},
        size="system",
        sizes=dict(zip(losses, THICK, strict=True)),
        ax=axes,
    )
    axes.set(xlabel="step", ylabel="")
    sns.move_legend(axes, "upper center", bbox_to_anchor=(0.5, -0.14), title=None)
