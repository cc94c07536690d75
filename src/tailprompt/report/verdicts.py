"""Test the claims of a paper: pure functions from effects with their errors to verdicts.

A claim compares `method` with `than`, and its effect is positive if the comparison favours `method`. Effects
are in points for scores, in doublings for the spread over seeds, in exponents for the slope of weight norms,
and in the units of the features for distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailprompt.errors import named
from tailprompt.report import uncertainty
from tailprompt.report.uncertainty import MeanError, SpreadError

ALPHA = 0.05


@dataclass(frozen=True)
class Effect:
    """An effect, its error, and the number of its seeds."""

    value: float
    error: MeanError | SpreadError
    seeds: int


def difference(method: np.ndarray, than: np.ndarray) -> Effect:
    """The mean difference of values `[1 + draws, seeds]`: the first row is measured, the others resampled."""
    apart = method - than
    of_seeds, both = uncertainty.of_means(apart)
    seeds = apart.shape[1]
    error = MeanError(((float(of_seeds), seeds - 1),), apart[1:].mean(axis=1), float(both))
    return Effect(float(apart[0].mean()), error, seeds)


def score(method: np.ndarray, than: np.ndarray) -> Effect:
    """The difference in points of scores in [0, 1]."""
    return difference(100 * method, 100 * than)


def seed_spread(method: np.ndarray, than: np.ndarray) -> Effect:
    """log2 of the ratio of SDs over the same seeds, of `than` to `method`: 1 if `than`'s is twice as large.

    The ratio of sample variances of normal scores has an F distribution. Test examples are fixed.
    """
    seeds, value = len(method), float("nan")
    if seeds > 1 and np.std(method) * np.std(than):
        value = float(np.log2(np.std(than, ddof=1) / np.std(method, ddof=1)))
    return Effect(value, SpreadError((seeds - 1,)), seeds)


def norm_slope(method: np.ndarray, than: np.ndarray, train: np.ndarray, taken: np.ndarray) -> Effect:
    """How much flatter the class norms of `method` are as a function of training counts.

    method, than: norms `[seeds, classes]`. train: counts `[classes]`. taken: how often each draw takes each
    class `[1 + draws, classes]`. The slope is that of log norm on log count, which for a good learner is near
    zero (GLEE Figure 3). The effect is |slope of than| - |slope of method|.
    """
    kept = train > 0
    x = np.log(train[kept].astype(float))
    first, second = (
        np.abs(np.stack([slope(x, np.log(row[kept]), taken[:, kept]) for row in norms], axis=1))
        for norms in (method, than)
    )
    return difference(second, first)


def slope(x: np.ndarray, y: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """The least-squares slope of y on x for each weighting `[draws, classes]`; NaN if x does not vary."""
    total = taken.sum(axis=1, keepdims=True)
    dx = x - (taken @ x)[:, None] / total
    dy = y - (taken @ y)[:, None] / total
    below = (taken * dx * dx).sum(axis=1)
    return np.divide(
        (taken * dx * dy).sum(axis=1), below, out=np.full(len(taken), np.nan), where=below > 1e-9
    )


def over_all(effects: list[Effect]) -> Effect:
    """The mean of the defined effects. Data sets are fixed, and so are their weights."""
    effects = [effect for effect in effects if not np.isnan(effect.value)] or effects
    errors = [effect.error for effect in effects]
    value = float(np.mean([effect.value for effect in effects]))
    return Effect(value, type(errors[0]).mean(errors), min(effect.seeds for effect in effects))


def interval(effect: Effect) -> tuple[float, float]:
    """The 95 % interval of an effect; NaN if its error is unknown."""
    reach = uncertainty.reach(effect.error.above)
    return effect.value - reach, effect.value + reach


def greater(effect: Effect, margin: float) -> tuple[float, float]:
    """p of the claim that the effect is above the margin (zero if it has none), and p of its contrary."""
    return effect.error.above(effect.value - margin), effect.error.above(margin - effect.value)


def not_greater(effect: Effect, margin: float) -> tuple[float, float]:
    """p of the claim that the effect is below the margin, however far, and p of its contrary."""
    return greater(effect, margin)[::-1]


def equal(effect: Effect, margin: float) -> tuple[float, float]:
    """p of the claim that the effect is within +-margin (two one-sided tests), and p of its contrary."""
    (over, below_top), (above_bottom, under) = greater(effect, margin), greater(effect, -margin)
    return max(below_top, above_bottom), min(over, under)


def decide(direction: str, effect: Effect, margin: float = 0.0) -> tuple[float, bool]:
    """The two-sided p of a decision in either direction, and whether it supports the claim.

    p is NaN where it is unknown: of one seed, or of an effect that is undefined.
    """
    claim, contrary = named(DIRECTIONS, direction, "direction of a claim")(effect, margin)
    if np.isnan(effect.value) or np.isnan(claim):
        return float("nan"), False
    return min(1.0, 2 * min(claim, contrary)), claim < contrary


def verdict(p: float, speaks_for: bool) -> str:
    """`holds` or `fails` if p is below 0.05, otherwise `undecided`, as where p is NaN."""
    if not p < ALPHA:
        return "undecided"
    return "holds" if speaks_for else "fails"


def holm(ps: list[float]) -> list[float]:
    """Holm's step-down correction of a family of p values."""
    adjusted, largest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(np.argsort(ps, kind="stable")):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = largest
    return adjusted


DIRECTIONS = {"greater": greater, "not_greater": not_greater, "equal": equal}
