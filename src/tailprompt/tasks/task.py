"""A task: what labels are, what a prediction row holds, what one example adds to sums, and scores from sums.

Scores, resamples, claims, tables, training and `predict` know a kind of data set by its task alone. A score
is a function of sums over examples, so a resample is scored from a weighted sum, whatever the score:

    classification  right, predicted and gold labels by class      accuracy, macro F1
    tagging         right, predicted and gold entities by type     entity F1
    answer spans    exact matches, overlaps and examples           exact match, token F1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from tailprompt.errors import BadInput, known, named
from tailprompt.tasks.metrics import ALL, BY_CLASS, CLASS

Added = Mapping[str, csr_array]  # statistic -> what each example adds, [examples, categories]
Sums = Mapping[str, np.ndarray]  # statistic -> [..., categories]


@dataclass(frozen=True)
class Task:
    """How data sets of one kind are predicted and scored.

    A report is what `prepare` wrote of a data set; of it functions here read `classes`, the names of the
    categories of which groups are made (classes, or types of entities), and what a task itself added to it.
    The loss of training divides by items: one an example here, as many as there are labelled tokens in
    tagging.
    """

    told_by: str  # the column of a data set's table that tells its task
    gold: str  # the column of what is right, in the data's table and in predictions
    metrics: tuple[str, ...]  # names of tasks.metrics, in the order in which they are written
    watched: tuple[str, ...]  # of these, what training computes on dev, to select by
    shown_as: tuple[str, ...]  # columns that `predict` adds to a file's rows
    reads: Callable[[Mapping], tuple[list[str], list[str]]]
    """Of a report: the columns that `added` reads of predictions, and of the data's table."""
    added: Callable[[pd.DataFrame, Mapping], Added]
    """Of rows with these columns and a report: what each adds to every sum. Counts are float32."""
    score: Callable[[str, Sums], np.ndarray]
    """Of a metric and sums over the categories that count: its value in [0, 1], NaN where it is undefined."""
    predicted: Callable[[np.ndarray, np.ndarray], dict]
    """Of logits and labels of examples: the columns of a prediction row that `added` reads."""
    row: Callable[[np.ndarray, np.ndarray], dict]
    """Of the same: all columns of a prediction row but id and split."""
    shown: Callable[[np.ndarray, pd.DataFrame, Sequence[str]], dict]
    """Of logits, a file's rows and class names: the columns `shown_as`."""


def sums(added: Added, times: np.ndarray) -> Sums:
    """Each statistic summed over the examples, every one as often as `times` `[..., examples]` says."""
    return {name: times @ each for name, each in added.items()}


def once(added: Added) -> Sums:
    """Each statistic summed over all examples, in float64."""
    return sums(added, np.ones(examples(added)))


def examples(added: Added) -> int:
    """How many examples there are statistics of."""
    return next(iter(added.values())).shape[0]


def of_group(summed: Sums, ids: Sequence[int]) -> Sums:
    """The sums of some categories."""
    return {name: value[..., np.asarray(ids, int)] for name, value in summed.items()}


def one_by_one(summed: Sums, categories: int) -> Sums:
    """The sums of each category by itself: groups of one, `[..., categories, 1]`."""
    return {name: value[..., :categories, None] for name, value in summed.items()}


def value(task: Task, name: str, summed: Sums, groups: Mapping[str, Sequence[int]]) -> np.ndarray:
    """The score `metric/group`; raises BadInput for a name that the task or the groups lack."""
    metric, _, group = name.partition("/")
    if metric not in task.metrics:
        raise BadInput(f"metric '{name}': before / comes one of {known(task.metrics)}")
    if group != ALL:
        summed = of_group(summed, named(groups, group, f"group of classes in metric '{name}',"))
    return task.score(metric, summed)


def watched(task: Task, logits: np.ndarray, labels: np.ndarray, classes: Sequence[str]) -> dict[str, float]:
    """The scores that training watches on dev."""
    rows = pd.DataFrame(task.predicted(logits, labels))
    summed = once(task.added(rows, {"classes": classes}))
    return {metric: float(task.score(metric, summed)) for metric in task.watched}


def scores(
    task: Task, rows: pd.DataFrame, report: Mapping, groups: Mapping[str, Sequence[int]]
) -> list[tuple[str, str, float | None]]:
    """(metric, group, value) of a split: for all, for each group and each class; None what is undefined.

    rows: what `reads` names. groups: class ids by the name of a group.
    """
    summed, classes = once(task.added(rows, report)), report["classes"]
    found = []
    for metric in task.metrics:
        values = {ALL: task.score(metric, summed)}
        values |= {group: task.score(metric, of_group(summed, ids)) for group, ids in groups.items()}
        if metric in BY_CLASS:
            each = task.score(metric, one_by_one(summed, len(classes)))
            values |= {f"{CLASS}{name}": score for name, score in zip(classes, each, strict=True)}
        found += [(metric, group, defined(score)) for group, score in values.items()]
    return found


def defined(score: float) -> float | None:
    """A score for a file: None in the place of NaN."""
    return None if np.isnan(score) else float(score)
