"""Resamples of test examples, from which the variance of test sampling is taken.

All runs on a data set are scored on the same examples, so examples are crossed with seeds and not nested in
them. A draw is one resample of the examples for all seeds, methods and data sets that have these examples as
their test set: cuts of one data set (of its training examples) are scored together, and not independently.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from zlib import crc32

import numpy as np

from tailprompt.tasks.task import Added, Task, examples, same, sums, value

DRAWS = 2000


def stream(*names: str) -> np.random.Generator:
    """A random generator for these names, the ids of test examples or others, the same on every machine."""
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
    drawn, last, summed = {}, {}, {}
    for run, each in added.items():
        new = {name: one for name, one in each.items() if not same(one, last.get(name))}
        last, summed = each, summed | sums(new, taken)  # the labels of all runs are summed once
        drawn[run] = {name: value(task, name, summed, groups) for name in names}
    return drawn
