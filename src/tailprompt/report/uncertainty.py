"""How far an effect may be from the truth: the tails of its error.

The error of a mean over seeds has two parts. The part of seeds is estimated from as many values as there are
seeds, so it has the tails of Student's t; over several data sets Welch and Satterthwaite give its degrees of
freedom (Satterthwaite 1946, Welch 1947). The part of test examples comes from thousands of draws and is
normal. p takes their sum (Behrens 1929, Fisher 1935) and has no floor.

One t for both parts, with Welch and Satterthwaite's degrees of freedom, is too sure: where the test part has
0.3 of the SD over seeds, it decides 12 % of true nulls at 2 seeds and 7.5 % at 3, since a variance over seeds
that is small by chance passes for certainty.

The functions come from scipy.special, which the tables' sparse counts bring; scipy.stats takes a second to
import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import loggamma, ndtr

LEVEL = 0.95
GRID = 200  # points of an integral over the unknown variance of seeds; p is exact to eight digits


@dataclass(frozen=True)
class MeanError:
    """The error of a mean over data sets and seeds.

    seeds: of each data set the variance of its mean over seeds, and its degrees of freedom. test: draws
    `[draws]` of the mean over resampled test examples, with the seeds as they are. both: the variance of
    `test` that stands in `seeds` too.
    """

    seeds: tuple[tuple[float, int], ...]
    test: np.ndarray
    both: float

    def above(self, x: float) -> float:
        """The probability that the error is above x; NaN if nothing is known of it. It is symmetric."""
        of_seeds, freedom, of_test = self.parts
        if not of_seeds + of_test > 0:  # one seed, a score that is undefined, or values that never vary
            return float("nan")
        return float(sum_above(np.array([x]), of_seeds, freedom, of_test)[0])

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The variance of seeds, its degrees of freedom, and the variance of test examples."""
        of_seeds, freedom = pooled(*np.array([self.seeds], float).transpose(2, 0, 1))
        return of_seeds, freedom, np.maximum(0.0, variance(self.test) - self.both)

    @staticmethod
    def mean(errors: Sequence[MeanError]) -> MeanError:
        """The error of the mean of effects, whose draws take the same examples of a common test set."""
        count = len(errors)
        seeds = tuple((of / count**2, freedom) for error in errors for of, freedom in error.seeds)
        test = np.mean([error.test for error in errors], axis=0)
        return MeanError(seeds, test, sum(error.both for error in errors) / count**2)


@dataclass(frozen=True)
class SpreadError:
    """The error of a mean over data sets of log2 of the ratio of two SDs over equally many seeds.

    freedom: of each data set the degrees of freedom of either SD. Scores are taken as normal.
    """

    freedom: tuple[int, ...]

    def above(self, x: float) -> float:
        """As that of `MeanError`."""
        if min(self.freedom) < 1:
            return float("nan")
        t, density, step = self.wave
        wave = np.sin(t * x * 2 * len(self.freedom) * np.log(2)) / t
        return float(np.clip(0.5 - step * (wave * density).sum() / np.pi, 0, 1))

    @cached_property
    def wave(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Where its characteristic function is integrated, what it is there, and the distance between."""
        # each ln F has the characteristic function |gamma(d / 2 + it)|^2 / gamma(d / 2)^2 (Gil-Pelaez 1951)
        step = 0.005
        t = step * (np.arange(10_000) + 0.5)
        log = sum(2 * (loggamma(d / 2 + 1j * t).real - loggamma(d / 2)) for d in self.freedom)
        return t, np.exp(log), step

    @staticmethod
    def mean(errors: Sequence[SpreadError]) -> SpreadError:
        """The error of the mean of effects, each of its own runs."""
        return SpreadError(tuple(freedom for error in errors for freedom in error.freedom))


def of_means(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances of the mean over seeds of values `[..., 1 + draws, seeds]`: of seeds, and what draws share.

    The first draw is measured and the others resample the test examples, the same ones for all seeds. What
    seeds make of single examples (their interaction) varies over seeds and over draws. It is counted once.
    """
    seeds = values.shape[-1]
    measured, drawn = values[..., 0, :], values[..., 1:, :]
    if seeds < 2:
        return np.full(measured.shape[:-1], np.nan), np.zeros(measured.shape[:-1])
    of_seeds = measured.var(axis=-1, ddof=1) / seeds
    alone, together = variance(drawn, axis=-2).mean(axis=-1), variance(drawn.mean(axis=-1), axis=-1)
    interaction = np.maximum(0, alone - together) / (seeds - 1)
    return of_seeds, np.minimum(interaction, np.minimum(of_seeds, together))


def variance(draws: np.ndarray, axis: int = -1) -> np.ndarray:
    """The variance of the draws that are defined; NaN if fewer than two are."""
    defined = ~np.isnan(draws)
    count = defined.sum(axis=axis)
    kept = np.where(defined, draws, 0.0)
    centre = np.expand_dims(kept.sum(axis=axis) / np.maximum(1, count), axis)
    squares = np.where(defined, (draws - centre) ** 2, 0.0).sum(axis=axis)
    return np.where(count > 1, squares / np.maximum(1, count - 1), np.nan)


def pooled(variances: np.ndarray, freedom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums of variances `[..., data sets]`, and their degrees of freedom by Welch and Satterthwaite."""
    total, squares = variances.sum(axis=-1), (variances**2 / np.maximum(freedom, 1)).sum(axis=-1)
    sums = np.sum(np.maximum(freedom, 1))
    return total, np.divide(total**2, squares, out=np.full(total.shape, float(sums)), where=squares > 0)


def sum_above(x: np.ndarray, of_seeds: np.ndarray, freedom: np.ndarray, of_test: np.ndarray) -> np.ndarray:
    """P(sqrt(of_seeds) T + sqrt(of_test) Z > x), of T with `freedom` and a normal Z; arrays `[n]`.

    T^2 = Z'^2 / W, and W freedom is chi-squared. So the sum is normal once W is known, and the rest is an
    integral over log W, whose density falls so fast at both ends that a plain sum is exact.
    """
    width = np.sqrt(2 / freedom)
    low, high = -(60 / freedom + 10 * width), 8 * width
    log_w = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, GRID)
    density = np.exp(freedom[:, None] / 2 * (log_w - np.exp(log_w) + 1))
    spread = np.sqrt(of_seeds[:, None] * np.exp(-log_w) + np.reshape(of_test, (-1, 1)))
    return (density * ndtr(-x[:, None] / spread)).sum(axis=1) / density.sum(axis=1)


def reach(above: Callable[[float], float], level: float = LEVEL) -> float:
    """How far a symmetric error goes at a level, on either side; NaN if it is unknown.

    It is the root of `above` - tail: regula falsi with the halving of Illinois (Dowell and Jarratt 1971).
    """
    tail = (1 - level) / 2
    low, at_low, high, at_high = 0.0, 0.5 - tail, 1.0, above(1.0) - tail
    if np.isnan(at_high):
        return float("nan")
    while at_high > 0:
        low, at_low, high = high, at_high, 2 * high
        at_high = above(high) - tail
    moved, x, step = 0, high, high
    while step > 1e-10 * high:
        x = (low * at_high - high * at_low) / (at_high - at_low)
        at = above(x) - tail
        if at > 0:
            step, low, at_low, at_high = x - low, x, at, at_high / (2 if moved > 0 else 1)
        else:
            step, high, at_high, at_low = high - x, x, at, at_low / (2 if moved < 0 else 1)
        moved = 1 if at > 0 else -1
    return x
