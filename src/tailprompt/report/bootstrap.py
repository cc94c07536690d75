"""Paired comparison of methods by resampling seeds and test examples.

All runs on a data set are scored on the same examples, so examples are crossed with seeds and not nested in
them. A draw is one resample of the examples for all seeds and methods, and one of the seeds for both methods.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from zlib import crc32

import numpy as np

from tailprompt.tasks.task import Added, Task, examples, sums, value

DRAWS = 2000
LEVEL = 0.95


def stream(*names: str) -> np.random.Generator:
    """A random generator for each data set and claim, the same on every machine."""
    return np.random.default_rng([crc32(name.encode()) for name in names])


def times(examples: int, draws: int, random: np.random.Generator) -> np.ndarray:
    """How often each draw takes each example, `[1 + draws, examples]`; the first row takes each once."""
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
    """Run -> score `metric/group` -> values `[1 + draws]`: on the test split, then on its resamples.

    added: run -> what each test example adds to the sums of its task.
    """
    if not added:
        return {}
    taken = times(examples(next(iter(added.values()))), DRAWS, random)
    taken = np.asfortranarray(taken)  # draws of an example are contiguous, which makes sparse products faster
    drawn = {}
    for run, each in added.items():
        summed = sums(each, taken)
        drawn[run] = {name: value(task, name, summed, groups) for name in names}
    return drawn


def difference(first: np.ndarray, second: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draws of mean(first) - mean(second) over resampled seeds: `[draws]` from two `[draws, seeds]`.

    A draw takes one seed fewer than there are (Rao and Wu 1988), which gives the variance of the mean. With
    as many seeds as there are, the interval would be too narrow for few seeds.
    """
    draws, seeds = first.shape
    picks = random.integers(0, seeds, (draws, max(1, seeds - 1)))
    return np.take_along_axis(first - second, picks, axis=1).mean(axis=1)


def interval(draws: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The percentile interval of the draws that are defined; NaN if none is."""
    defined = draws[~np.isnan(draws)]
    if not defined.size:
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def beyond(draws: np.ndarray, bound: float, *, above: bool) -> float:
    """The share of draws at or beyond a bound, (1 + hits) / (1 + draws), which is never zero."""
    defined = draws[~np.isnan(draws)]
    hits = (defined >= bound if above else defined <= bound).sum()
    return float((1 + hits) / (1 + defined.size))


def two_sided(draws: np.ndarray) -> float:
    """The two-sided p of no difference, from draws of the difference."""
    return min(1.0, 2 * min(beyond(draws, 0.0, above=True), beyond(draws, 0.0, above=False)))
