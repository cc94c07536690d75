"""Test the claims of a paper: pure functions from effects with bootstrap draws to verdicts.

A claim compares `method` with `than`, and its effect is positive if the comparison favours `method`. Effects
are in points for scores, in doublings for the spread over seeds, in exponents for the slope of weight norms,
and in the units of the features for distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailprompt.errors import named
from tailprompt.report import bootstrap

ALPHA = 0.05


@dataclass(frozen=True)
class Effect:
    """An effect, its bootstrap draws `[draws]`, and the number of its seeds."""

    value: float
    draws: np.ndarray
    seeds: int


def difference(method: np.ndarray, than: np.ndarray, random: np.random.Generator) -> Effect:
    """The difference of values `[1 + draws, seeds]`, whose first row is measured and the others resampled."""
    draws = bootstrap.difference(method[1:], than[1:], random)
    return Effect(float((method[0] - than[0]).mean()), draws, method.shape[1])


def score(method: np.ndarray, than: np.ndarray, random: np.random.Generator) -> Effect:
    """The difference in points of scores in [0, 1]."""
    return difference(100 * method, 100 * than, random)


def seed_spread(method: np.ndarray, than: np.ndarray, draws: int, random: np.random.Generator) -> Effect:
    """log2 of the ratio of SDs over seeds, of `than` to `method`: 1 if that of `than` is twice as large.

    Draws invert the F distribution of a ratio of sample variances of normal scores. Test examples are fixed.
    """
    if min(len(method), len(than)) < 2 or not np.std(method) * np.std(than):
        return Effect(float("nan"), np.full(draws, np.nan), min(len(method), len(than)))
    value = float(np.log2(np.std(than, ddof=1) / np.std(method, ddof=1)))
    chance = random.f(len(than) - 1, len(method) - 1, draws)
    return Effect(value, value - np.log2(chance) / 2, min(len(method), len(than)))


def norm_slope(
    method: np.ndarray, than: np.ndarray, train: np.ndarray, draws: int, random: np.random.Generator
) -> Effect:
    """How much flatter the class norms of `method` are as a function of training counts.

    method, than: norms `[seeds, classes]`. train: counts `[classes]`. The slope is that of log norm on log
    count, which for a good learner is near zero (GLEE Figure 3). The effect is |slope of than| - |slope of
    method|. Draws resample classes, crossed with seeds.
    """
    kept = train > 0
    taken = bootstrap.times(int(kept.sum()), draws, random)
    x = np.log(train[kept].astype(float))
    first, second = (
        np.abs(np.stack([slope(x, np.log(row[kept]), taken) for row in norms], axis=1))
        for norms in (method, than)
    )
    value = float((second[0] - first[0]).mean())
    return Effect(value, bootstrap.difference(second[1:], first[1:], random), len(method))


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
    """The mean of the defined effects, draw by draw. Data sets are fixed and their errors independent."""
    effects = [effect for effect in effects if not np.isnan(effect.value)] or effects
    value = float(np.mean([effect.value for effect in effects]))
    draws = np.mean([effect.draws for effect in effects], axis=0)
    return Effect(value, draws, min(effect.seeds for effect in effects))


def greater(draws: np.ndarray, margin: float) -> tuple[float, float]:
    """p of the claim that the effect is above zero, and p of its contrary."""
    return bootstrap.beyond(draws, 0.0, above=False), bootstrap.beyond(draws, 0.0, above=True)


def not_greater(draws: np.ndarray, margin: float) -> tuple[float, float]:
    """p of the claim that the effect is below the margin, however far, and p of its contrary."""
    return bootstrap.beyond(draws, margin, above=True), bootstrap.beyond(draws, margin, above=False)


def equal(draws: np.ndarray, margin: float) -> tuple[float, float]:
    """p of the claim that the effect is within +-margin (two one-sided tests), and p of its contrary."""
    above, below = bootstrap.beyond(draws, margin, above=True), bootstrap.beyond(draws, -margin, above=False)
    outside = bootstrap.beyond(draws, margin, above=False), bootstrap.beyond(draws, -margin, above=True)
    return max(above, below), min(outside)


def decide(direction: str, draws: np.ndarray, margin: float = 0.0) -> tuple[float, bool]:
    """The two-sided p of a decision in either direction, and whether it supports the claim."""
    if np.isnan(draws).all():
        return 1.0, False
    claim, contrary = named(DIRECTIONS, direction, "direction of a claim")(draws, margin)
    return min(1.0, 2 * min(claim, contrary)), claim < contrary


def verdict(p: float, speaks_for: bool) -> str:
    """`holds` or `fails` if p is below 0.05, otherwise `undecided`."""
    if p >= ALPHA:
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
