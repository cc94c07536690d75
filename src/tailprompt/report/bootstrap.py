"""Paired comparison of methods by resampling seeds and test examples.

Runs of one data set are scored on the same examples, so examples are crossed with seeds, not nested in them:
a draw takes one resample of the examples for all seeds and methods, and one of the seeds for both methods.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from zlib import crc32

import numpy as np

from tailprompt.errors import BadInput, known, named
from tailprompt.tasks import metrics

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


def counts(taken: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Examples of each class in each draw, `[draws, classes]`; those with a negative label are left out."""
    return taken @ (labels[:, None] == np.arange(classes)).astype(np.float32)


def replicates(
    names: Sequence[str],
    groups: Mapping[str, Sequence[int]],
    gold: np.ndarray,
    predicted: Mapping[Hashable, np.ndarray],
    classes: int,
    random: np.random.Generator,
) -> dict[Hashable, dict[str, np.ndarray]]:
    """By run, each score `metric/group` `[1 + draws]`: on the test split, then on its resamples."""
    taken = times(len(gold), DRAWS, random)
    support = counts(taken, gold, classes)
    found = {}
    for run, labels in predicted.items():
        right = counts(taken, np.where(gold == labels, gold, -1), classes)
        total = counts(taken, labels, classes)
        found[run] = {}
        for name in names:
            metric, ids = parts(name, groups)
            found[run][name] = metrics.from_counts(metric, ids, right, total, support)
    return found


def parts(name: str, groups: Mapping[str, Sequence[int]]) -> tuple[str, Sequence[int] | None]:
    """The metric of `metric/group` and the classes of the group, None for all; raises BadInput on a typo."""
    metric, _, group = name.partition("/")
    if metric not in metrics.NAMES:
        raise BadInput(f"metric '{name}': before / comes one of {known(metrics.NAMES)}")
    return metric, None if group == "all" else named(groups, group, f"group of classes in metric '{name}',")


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
