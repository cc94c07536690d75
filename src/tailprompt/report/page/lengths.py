"""How long methods were trained, and whether that was long enough to judge them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

SHORT = 50  # steps, below which a method has hardly been trained
RISING = 1.0  # points of dev that the last evaluation gained, above which training ended too early


@dataclass(frozen=True)
class Length:
    """How long a method was trained: steps and epochs (medians over seeds), rows, and tokens of a text.

    gained: the points of dev that the last evaluation gained over the best before, a mean over seeds;
    infinite if there was one evaluation only. Without steps (a fitted head) it is zero. cut: the share of the
    texts that are longer than `tokens`, of which the rest was not read.
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
    dev = [100 * curve[select if select in curve else "f1"].to_numpy() for curve in curves]
    gained = np.mean([one[-1] - one[:-1].max() if len(one) > 1 else np.inf for one in dev])
    return Length(
        float(steps), float(np.median([c.epoch.iloc[-1] for c in curves])), rows, tokens, float(gained), cut
    )


def curve_of(folder: Path) -> pd.DataFrame:
    """The evaluations of a run; none of a fitted head."""
    file = folder / "curve.csv"
    try:
        return pd.read_csv(file) if file.is_file() else pd.DataFrame()
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
