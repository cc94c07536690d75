"""Scores of one split: accuracy, precision, recall and F1 for all classes, for groups and for each class.

The long-tailed convention is GLEE's (section 3.1 and the authors' code): macro F1 is scikit-learn's, the mean
over the classes that occur in gold or predictions; a group's F1 is the mean over the group's classes, with
no example left out. All values lie in [0, 1]; what is undefined is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

NAMES = ("accuracy", "f1", "precision", "recall")


def accuracy(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Share of examples whose class is right."""
    return float(accuracy_score(gold, predicted))


def macro_f1(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Unweighted mean F1 over union(gold, predicted): a class predicted but absent from gold adds a zero."""
    return float(f1_score(gold, predicted, average="macro", zero_division=0))


def per_class(gold: np.ndarray, predicted: np.ndarray, classes: int) -> dict[str, np.ndarray]:
    """Precision, recall and F1 by class, each `[classes]`; NaN for a class that occurs in neither."""
    ids = np.arange(classes)
    found = precision_recall_fscore_support(gold, predicted, labels=ids, zero_division=0)
    occurs = np.isin(ids, gold) | np.isin(ids, predicted)
    names = ("precision", "recall", "f1")
    return {name: np.where(occurs, values, np.nan) for name, values in zip(names, found, strict=False)}


def from_counts(
    name: str, ids: Sequence[int] | None, right: np.ndarray, predicted: np.ndarray, gold: np.ndarray
) -> np.ndarray:
    """A score from counts per class, `[..., classes]` each: right ones, predictions, gold labels.

    `ids` are a group's classes, None all of them. The same numbers as above for whole resamples at once;
    NaN where undefined.
    """
    if ids is not None:
        right, predicted, gold = (counts[..., list(ids)] for counts in (right, predicted, gold))
    if name == "accuracy":
        return divide(right.sum(-1), gold.sum(-1), empty=np.nan)
    occurs = predicted + gold > 0
    below = {"f1": (predicted + gold) / 2, "precision": predicted, "recall": gold}[name]
    return divide(divide(right, below, empty=0.0).sum(-1), occurs.sum(-1), empty=np.nan)


def divide(above: np.ndarray, below: np.ndarray, *, empty: float) -> np.ndarray:
    """`above / below`, and `empty` where `below` is zero."""
    return np.divide(above, below, out=np.full(np.shape(above), empty), where=np.asarray(below) > 0)


def mean(values: np.ndarray) -> float | None:
    """Mean of the defined values; None when there is none."""
    defined = np.asarray(values, float)
    defined = defined[~np.isnan(defined)]
    return float(defined.mean()) if defined.size else None


def spread(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n - 1 below), as in GLEE's subscripts; None for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def restricted(scores: np.ndarray, allowed: Sequence[int]) -> np.ndarray:
    """The best of the allowed classes for each row of scores `[examples, classes]`.

    ImageNet-A and -R have 200 of ImageNet's classes, ObjectNet 113: the others are no answer there.
    """
    ids = np.asarray(allowed)
    return ids[np.asarray(scores)[:, ids].argmax(axis=1)]


def folded(predicted: np.ndarray, accepted: Sequence[Sequence[int]], labels: np.ndarray) -> np.ndarray:
    """Predictions in which any right class of an example (ImageNet-ReaL, ObjectNet) stands as its label."""
    right = [guess in classes for guess, classes in zip(predicted, accepted, strict=True)]
    return np.where(right, labels, predicted)


def scores(
    gold: np.ndarray, predicted: np.ndarray, classes: Sequence[str], groups: Mapping[str, Sequence[int]]
) -> list[dict]:
    """Rows (metric, group, value) of one split.

    `groups` gives class ids by group name. A group's accuracy is over the examples of its classes.
    """
    gold, predicted = np.asarray(gold), np.asarray(predicted)
    rows = [("accuracy", "all", accuracy(gold, predicted))]
    members = {group: np.isin(gold, list(ids)) for group, ids in groups.items()}
    rows += [
        ("accuracy", group, accuracy(gold[inside], predicted[inside]) if inside.any() else None)
        for group, inside in members.items()
    ]
    for metric, values in per_class(gold, predicted, len(classes)).items():
        overall = macro_f1(gold, predicted) if metric == "f1" else mean(values)
        rows.append((metric, "all", overall))
        rows += [(metric, group, mean(values[list(ids)])) for group, ids in groups.items()]
        named = zip(classes, values, strict=True)
        rows += [
            (metric, f"class:{name}", None if np.isnan(value) else float(value)) for name, value in named
        ]
    return [{"metric": metric, "group": group, "value": value} for metric, group, value in rows]
