"""Paired comparison of methods by resampling seeds and test examples.

Runs of one data set are scored on the same examples, so examples are crossed with seeds, not nested in them:
a draw takes one resample of the examples for all seeds and methods, and one of the seeds for both methods.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from zlib import crc32

import numpy as np

from tailprompt.tasks.task import Added, Task, examples, sums, value

DRAWS = 2000
LEVEL = 0.95


def stream(*names: str) -> np.random.Generator:
    """Random numbers of their own for each data set and claim, the same on every machine."""
    return np.random.default_rng([crc32(name.encode()) for name in names])


def times(examples: int, draws: int, random: np.random.Generator) -> np.ndarray:
    """How often each draw takes each example, `[1 + draws, examples]`; the first row is all of them once."""
    taken = np.ones((1 + draws, examples), np.float32)
    for row in taken[1:]:
        row[:] = np.bincount(random.integers(0, examples, examples), minlength=examples)
    return taken


def replicates(
    task: Task,
    names: Sequence[str],
    groups: Mapping[str, Sequence[int]],
    added: Mapping[Hashable, Added],
    random: np.random.Generator,
) -> dict[Hashable, dict[str, np.ndarray]]:
    """By run, each score `metric/group` `[1 + draws]`: on the test split, then on its resamples.

    added: by run, what each test example adds to the sums of its task.
    """
    if not added:
        return {}
    taken = times(examples(next(iter(added.values()))), DRAWS, random)
    taken = np.asfortranarray(taken)  # draws of an example side by side: sparse products are faster
    drawn = {}
    for run, each in added.items():
        summed = sums(each, taken)
        drawn[run] = {name: value(task, name, summed, groups) for name in names}
    return drawn


def difference(first: np.ndarray, second: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draws of mean(first) - mean(second) over resampled seeds, `[draws]` from `[draws, seeds]` each.

    One seed fewer is drawn than there are (Rao and Wu 1988): so many have the variance of the mean;
    as many as there are would make few seeds look too sure.
    """
    draws, seeds = first.shape
    picks = random.integers(0, seeds, (draws, max(1, seeds - 1)))
    return np.take_along_axis(first - second, picks, axis=1).mean(axis=1)


def interval(draws: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Percentile interval of the defined draws; NaN where there are none."""
    defined = draws[~np.isnan(draws)]
    if not defined.size:
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def beyond(draws: np.ndarray, bound: float, *, above: bool) -> float:
    """Share of draws at or beyond a bound, never zero: (1 + hits) / (1 + draws)."""
    defined = draws[~np.isnan(draws)]
    hits = (defined >= bound if above else defined <= bound).sum()
    return float((1 + hits) / (1 + defined.size))


def two_sided(draws: np.ndarray) -> float:
    """p of no difference, from the draws of a difference."""
    return min(1.0, 2 * min(beyond(draws, 0.0, above=True), beyond(draws, 0.0, above=False)))
