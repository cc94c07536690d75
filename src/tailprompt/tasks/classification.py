"""Classification: an example has one class. Scores: accuracy, and means over classes.

The long-tailed convention is GLEE's (section 3.1 and the authors' code). A mean is scikit-learn's macro
average over the classes that occur in labels or predictions. That of a group is over the group's classes, and
no example is left out. The accuracy of a group is over the examples of its classes. Balanced accuracy and
average precision are means over the classes that occur in labels.

On a test set with the classes of another data set (LPT, Tables 6 and 16) an image may have several right
classes, and predictions may be restricted to some classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from tailprompt.tasks.metrics import RANKED
from tailprompt.tasks.ranking import Ranked, divide, indicator
from tailprompt.tasks.task import SCORES, Added, Given, Sums, Task

RANKS = ("prediction", "probability"), ("second", "second_probability"), ("third", "third_probability")


def reads(report: Mapping) -> tuple[list[str], list[str]]:
    """Columns of predictions (with scores, if they are needed) and of the data (all right classes).

    report: has `trained_on` and `among` (class ids, or null for all) if the classes are another data set's,
    and `ranked` if average precision is asked.
    """
    among = [SCORES] if report.get("among") or report.get("ranked") else []
    return ["label", "prediction", *among], ["accepted"] if "trained_on" in report else []


def added(rows: pd.DataFrame, report: Mapping) -> Added:
    """Right predictions, wrong ones and labels of each example, by class.

    A prediction that is no class (open decoding) has its own column after the classes.
    """
    gold, guess = rows["label"].to_numpy(), answers(rows, report.get("among"))
    columns = max(len(report["classes"]), guess.max(initial=0) + 1)
    none = np.int64(-1)  # else it is the largest of unsigned ids
    right, wrong = np.where(gold == guess, gold, none), np.where(gold == guess, none, guess)
    counted = {"right": right, "wrong": wrong, "gold": gold}
    statistics = {name: indicator(ids, columns) for name, ids in counted.items()}
    return statistics | ({"ranked": ranked(rows, report, columns)} if report.get("ranked") else {})


def ranked(rows: pd.DataFrame, report: Mapping, columns: int) -> Ranked:
    """The probabilities of all classes, or of those that the report allows, by which examples are ranked."""
    logits = np.stack(rows[SCORES])
    if among := report.get("among"):
        logits[:, ~np.isin(np.arange(logits.shape[1]), among)] = -np.inf
    return Ranked(softmax(logits), rows["label"].to_numpy(), columns)


def answers(rows: pd.DataFrame, among: Sequence[int] | None) -> np.ndarray:
    """Predicted classes, restricted to `among` if it is given; any right class is replaced by the label."""
    guess = chosen(rows, among)
    return folded(guess, rows["accepted"], rows["label"].to_numpy()) if "accepted" in rows else guess


def decided(rows: pd.DataFrame, report: Mapping) -> pd.DataFrame:
    """Rows whose prediction is the one chosen among the classes that the report allows."""
    return rows.assign(prediction=chosen(rows, report.get("among")))


def chosen(rows: pd.DataFrame, among: Sequence[int] | None) -> np.ndarray:
    """Predicted classes, restricted to `among` if it is given; rows without scores are decided."""
    if among and SCORES in rows:
        return restricted(np.stack(rows[SCORES]), among)
    return rows["prediction"].to_numpy()


def restricted(scores: np.ndarray, allowed: Sequence[int]) -> np.ndarray:
    """The best of the allowed classes for each row of scores `[examples, classes]`.

    ImageNet-A and -R have 200 of ImageNet's classes and ObjectNet 113; the others are not predicted there.
    """
    ids = np.asarray(allowed)
    return ids[scores[:, ids].argmax(axis=1)]


def folded(guesses: np.ndarray, accepted: Sequence[Sequence[int]], labels: np.ndarray) -> np.ndarray:
    """Guesses in which any right class of an example is replaced by its label (ImageNet-ReaL, ObjectNet)."""
    right = [guess in classes for guess, classes in zip(guesses, accepted, strict=True)]
    return np.where(right, labels, guesses)


def score(metric: str, summed: Sums) -> np.ndarray:
    """Accuracy, or the mean of another metric over the classes that occur, from counts by class."""
    right, wrong, gold = (summed[name] for name in ("right", "wrong", "gold"))
    predicted = right + wrong
    if metric == RANKED:
        return mean(np.where(gold > 0, summed["ranked"], 0.0), gold > 0)
    if metric == "balanced_accuracy":
        return mean(divide(right, gold, empty=0.0), gold > 0)
    if metric == "accuracy":
        return divide(right.sum(-1), gold.sum(-1), empty=np.nan)
    below = {"f1": (predicted + gold) / 2, "precision": predicted, "recall": gold}[metric]
    return mean(divide(right, below, empty=0.0), predicted + gold > 0)


def mean(values: np.ndarray, occurs: np.ndarray) -> np.ndarray:
    """The mean of values `[..., classes]` over classes that occur (the others are zero); NaN if none does.

    Classes that never occur are left out first, so that numpy's sum rounds as scikit-learn's does.
    """
    ever = occurs.any(axis=tuple(range(occurs.ndim - 1)))
    return divide(np.compress(ever, values, axis=-1).sum(-1), occurs.sum(-1), empty=np.nan)


def predicted(logits: np.ndarray, given: Given) -> dict:
    """The label, and the class with the best logit `[examples, classes]`; of equals the lowest id."""
    return {"label": given.labels, "prediction": logits.argmax(axis=1)}


def row(logits: np.ndarray, given: Given) -> dict:
    """The label, the prediction, and the scores of all classes."""
    return {**predicted(logits, given), SCORES: list(logits)}


def shown(
    logits: np.ndarray, given: Given, rows: pd.DataFrame, classes: Sequence[str]
) -> dict[str, np.ndarray]:
    """The three most probable classes (or as many as there are) with their probabilities.

    A column that is no class is left out, and a class with logit -inf is not named.
    """
    shares, names, columns = softmax(logits[:, : len(classes)]), np.array(classes, dtype=object), {}
    for (name, probability), (ids, values) in zip(RANKS, best(shares), strict=False):
        columns[name] = np.where(values > 0, names[ids], None)
        columns[probability] = values.round(6)
    return columns


def softmax(logits: np.ndarray) -> np.ndarray:
    """Shares `[examples, classes]` that add up to one, in float64."""
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def best(shares: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ids and shares of the largest class of each example, then of the second, and so on.

    Of equal shares the lowest id comes first.
    """
    left = shares.copy()
    for _ in range(shares.shape[1]):
        ids = left.argmax(axis=1)[:, None]
        yield ids[:, 0], np.take_along_axis(shares, ids, axis=1)[:, 0]
        np.put_along_axis(left, ids, -1.0, axis=1)


CLASSIFICATION = Task(
    told_by="label",
    gold="label",
    metrics=("accuracy", "precision", "recall", "f1", "balanced_accuracy"),
    ranks=(RANKED,),
    watched=lambda report: ("accuracy", "f1"),
    shown_as=tuple(name for names in RANKS for name in names),
    reads=reads,
    added=added,
    score=score,
    predicted=predicted,
    row=row,
    shown=shown,
    decided=decided,
)
