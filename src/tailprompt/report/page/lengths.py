"""How long methods were trained, and whether that was long enough to judge them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

SHORT = 50  # steps, below which a method has hardly been trained
RISING = 1.0  # points of dev that the end of training gained, above which it came too early
END = 0.1  # share of the epochs that are the end; the last evaluation may come a step after the one before


@dataclass(frozen=True)
class Length:
    """How long a method was trained: steps and epochs (medians over seeds), rows, and tokens of a text.

    gained: the points of dev that the last evaluation gained over the best before the end, a mean over seeds,
    in the score that selects or in accuracy, which rises first where most classes are rare; infinite if there
    was none before. Without steps (a fitted head) it is zero. cut: the share of the texts that are longer
    than `tokens`, of which the rest was not read.
    """

    steps: float
    epochs: float
    rows: int
    tokens: int | None
    gained: float
    cut: float = 0.0

    @property
    def hardly(self) -> bool:
        """Whether it took too few steps, or was still getting better, so that its score is no verdict."""
        return self.steps > 0 and (self.steps < SHORT or self.gained > RISING)


def length(runs: pd.DataFrame) -> Length:
    """How long the runs of a method were trained."""
    steps = np.median([record.get("steps") or 0 for record in runs.record])
    first = runs.record.iloc[0]
    counts = first.get("data", {}).get("rows", {})
    rows, cut = (
        counts.get("train", 0),
        sum(first.get("truncated", {}).values()) / max(1, sum(counts.values())),
    )
    tokens = first["settings"].get("max_length")
    curves = [curve for folder in runs.folder if len(curve := curve_of(folder))]
    if not steps or not curves:
        return Length(0.0, 0.0, rows, tokens, 0.0, cut)
    select = first["settings"].get("select")
    names = {select if select in curves[0] else "f1", "accuracy"} & {*curves[0]}
    gained = max(float(np.mean([gain(curve, name) for curve in curves])) for name in names)
    epochs = float(np.median([curve.epoch.iloc[-1] for curve in curves]))
    return Length(float(steps), epochs, rows, tokens, gained, cut)


def gain(curve: pd.DataFrame, score: str) -> float:
    """The points by which the last evaluation is above the best before the end; infinite if there is none."""
    dev = 100 * curve[score].to_numpy()
    before = dev[curve.epoch <= (1 - END) * curve.epoch.iloc[-1]]
    return float(dev[-1] - before.max()) if len(before) else np.inf


def curve_of(folder: Path) -> pd.DataFrame:
    """The evaluations of a run; none of a fitted head."""
    file = folder / "curve.csv"
    try:
        return pd.read_csv(file) if file.is_file() else pd.DataFrame()
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
