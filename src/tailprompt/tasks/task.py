"""A task defines labels, prediction rows, what each example adds to sums, and scores from those sums.

Scores, resamples, claims, tables, training and `predict` depend on a kind of data set only through its task.
Every score is a function of sums over examples, so a resample is scored from a weighted sum; average
precision alone ranks each resample anew:

    classification  right, wrong and gold labels by class          accuracy, macro F1, balanced accuracy
                    what ranks an example (tasks.ranking)          average precision
    tagging         right, predicted and gold entities by type     entity F1
    answer spans    exact matches, overlaps and examples           exact match, token F1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from tailprompt.errors import BadInput, known, named
from tailprompt.tasks.metrics import ALL, BY_CLASS, CLASS

SCORES = "scores"  # a column of predictions, of all classes, from which a task may decide again
Added = Mapping[str, csr_array]  # statistic -> what each example adds, [examples, categories]
Sums = Mapping[str, np.ndarray]  # statistic -> [..., categories]


def unchanged(rows: pd.DataFrame, _report: Mapping) -> pd.DataFrame:
    """The rows themselves."""
    return rows


def unchosen(_logits: np.ndarray, _given: Given) -> None:
    """No threshold is chosen."""


@dataclass(frozen=True)
class Given:
    """What came with the examples that logits are of.

    labels: of each example its class; or of its tokens `[examples, tokens]`, negative where none is asked
    for; or the first and last token of the answer `[examples, 2]`. names: the id of each example's row, which
    the windows of a long row share. aligned: what the task made of the rows to find its way back from tokens.
    sets: of each example the number of its set, where sets are joined. threshold: the one that dev chose;
    None where these rows, which are dev's, choose it themselves.
    """

    labels: np.ndarray
    names: Sequence[str]
    aligned: Any = None
    sets: np.ndarray | None = None
    threshold: float | None = None

    @property
    def ids(self) -> list[str]:
        """The ids of the rows in order, each once."""
        return list(dict.fromkeys(self.names))

    @property
    def by_set(self) -> np.ndarray:
        """Which rows are of each of joined sets, `[sets, rows]`."""
        of_row = np.array([*dict(zip(self.names, self.sets, strict=True)).values()])
        return (of_row == np.unique(of_row)[:, None]).astype(float)


@dataclass(frozen=True)
class Task:
    """How data sets of one kind are predicted and scored.

    A report is what `prepare` wrote about a data set. The functions here read its `classes`, which are the
    names of the categories that form groups (classes, or types of entities), and what the task added to it.
    In training the sum of losses is divided by the number of items: examples, or labelled tokens for tags.
    Logits are `[examples, classes]`; of a unit smaller than an example `[examples, tokens, outputs]`.
    """

    told_by: str  # the column by which a data set is recognised as one of this task
    gold: str  # the column of the right answers, in the data and in predictions
    metrics: tuple[str, ...]  # names in tasks.metrics, in the order in which they are written
    watched: Callable[[Mapping], tuple[str, ...]]
    """report -> metrics that training computes on dev for selection."""
    shown_as: tuple[str, ...]  # columns that `predict` adds to the rows of a file
    reads: Callable[[Mapping], tuple[list[str], list[str]]]
    """report -> columns that `added` reads from predictions, and from the data."""
    added: Callable[[pd.DataFrame, Mapping], Added]
    """(rows with these columns, report) -> what each row adds to every sum. Counts are float32."""
    score: Callable[[str, Sums], np.ndarray]
    """(metric, sums over the categories that count) -> its value in [0, 1]; NaN if it is undefined."""
    predicted: Callable[[np.ndarray, Given], dict]
    """(logits, what came with them) -> the columns of prediction rows that `added` reads."""
    row: Callable[[np.ndarray, Given], dict]
    """(logits, what came with them) -> all columns of prediction rows except id and split."""
    shown: Callable[[np.ndarray, Given, pd.DataFrame, Sequence[str]], dict]
    """(logits, what came with them, rows of a file, class names) -> the columns `shown_as`."""
    decided: Callable[[pd.DataFrame, Mapping], pd.DataFrame] = unchanged
    """(rows, report) -> rows that add the same to every sum without the column SCORES."""
    threshold: Callable[[np.ndarray, Given], float | None] = unchosen
    """(logits, what came with them) of dev -> the threshold that scores best there; None if there is none."""
    ranks: tuple[str, ...] = ()
    """Names of metrics that rank examples: `added` has what they take where the report says `ranked`."""
    unit: Literal["example", "token", "span"] = "example"
    """What is predicted: a class of the example, a tag of each token, or the two ends of an answer."""
    outputs: Callable[[Sequence[str]], list[str]] = list
    """class names -> names of the outputs of the head."""
    outputs_of: Callable[[Sequence[str], str], list[int]] | None = None
    """(class names, name of one of joined sets) -> its outputs among all; None where no sets are joined."""


def sums(added: Added, times: np.ndarray) -> Sums:
    """Each statistic summed over the examples, weighted by `times` `[..., examples]`.

    One product with all counts side by side reads `times`, which is large, once.
    """
    counts = {name: each for name, each in added.items() if isinstance(each, csr_array)}
    others = {name: times @ each for name, each in added.items() if name not in counts}
    if not counts:
        return others
    ends = np.cumsum([each.shape[1] for each in counts.values()])
    parts = np.split(times @ hstack([*counts.values()], format="csr"), ends[:-1], axis=-1)
    return dict(zip(counts, parts, strict=True)) | others


def same(one: object, other: object) -> bool:
    """Whether two statistics of an `Added` are equal counts."""
    if not (isinstance(one, csr_array) and isinstance(other, csr_array) and one.shape == other.shape):
        return False
    return all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data")
    )


def once(added: Added) -> Sums:
    """Each statistic summed over all examples, in float64."""
    return sums(added, np.ones(examples(added)))


def examples(added: Added) -> int:
    """The number of examples in statistics."""
    return next(iter(added.values())).shape[0]


def of_group(summed: Sums, ids: Sequence[int]) -> Sums:
    """The sums restricted to some categories."""
    return {name: value[..., np.asarray(ids, int)] for name, value in summed.items()}


def one_by_one(summed: Sums, categories: int) -> Sums:
    """The sums of each single category, as groups of one: `[..., categories, 1]`."""
    return {name: value[..., :categories, None] for name, value in summed.items()}


def value(task: Task, name: str, summed: Sums, groups: Mapping[str, Sequence[int]]) -> np.ndarray:
    """The score `metric/group`; raises BadInput if the task has no such metric, or there is no such group."""
    metric, _, group = name.partition("/")
    allowed = (*task.metrics, *task.ranks)
    if metric not in allowed:
        raise BadInput(f"metric '{name}': before / comes one of {known(allowed)}")
    if group != ALL:
        summed = of_group(summed, named(groups, group, f"group of classes in metric '{name}',"))
    return task.score(metric, summed)


def watched(task: Task, logits: np.ndarray, given: Given, report: Mapping) -> dict[str, float]:
    """The scores that training watches on dev; of joined sets the mean over them."""
    rows = pd.DataFrame(task.predicted(logits, given))
    added = task.added(rows, report)
    summed = once(added) if given.sets is None else sums(added, given.by_set)
    return {metric: float(np.mean(task.score(metric, summed))) for metric in task.watched(report)}


def scores(
    task: Task, rows: pd.DataFrame, report: Mapping, groups: Mapping[str, Sequence[int]]
) -> list[tuple[str, str, float | None]]:
    """(metric, group, value) of a split for all examples, each group and each class; None if undefined.

    rows: have the columns of `reads`. groups: class ids by the name of a group.
    """
    summed, classes = once(task.added(rows, report)), report["classes"]
    lines = []
    for metric in task.metrics:
        values = {ALL: task.score(metric, summed)}
        values |= {group: task.score(metric, of_group(summed, ids)) for group, ids in groups.items()}
        if metric in BY_CLASS:
            each = task.score(metric, one_by_one(summed, len(classes)))
            values |= {f"{CLASS}{name}": score for name, score in zip(classes, each, strict=True)}
        lines += [(metric, group, defined(score)) for group, score in values.items()]
    return lines


def defined(score: float) -> float | None:
    """A score as it is written to a file: None instead of NaN."""
    return None if np.isnan(score) else float(score)
