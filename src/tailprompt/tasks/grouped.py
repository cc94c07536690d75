"""Grouped rows: each option of a question is a row that is right or wrong, and a question is one example.

Several options of a question may be right (GROUPED, as MultiRC), or the model picks one (PICKED, as ReCoRD).
A run trains on the rows as on any texts of two classes, of which the second says that an option is right.
What an example adds to the sums stands under that class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from tailprompt.tasks import classification
from tailprompt.tasks.classification import divide
from tailprompt.tasks.task import Added, Given, Sums, Task
from tailprompt.tasks.texts import exact, overlap

GROUP, OPTION, ANSWERS = "group", "option", "answers"
RIGHT = 1  # the second class says that an option is right


def reads(report: Mapping) -> tuple[list[str], list[str]]:
    """Columns that `added` reads from predictions, and none from the data."""
    return ["label", "prediction", GROUP], []


def added(rows: pd.DataFrame, report: Mapping) -> Added:
    """What each question adds: its right, predicted and gold options, and whether all are as they should.

    `agreed` and `options` count rows, for accuracy.
    """
    gold, guess, place = rows["label"].to_numpy(), rows["prediction"].to_numpy(), places(rows)
    wrong = np.bincount(place, gold != guess)
    counted = {
        "right": np.bincount(place, (gold == RIGHT) & (guess == RIGHT)),
        "predicted": np.bincount(place, guess == RIGHT),
        "gold": np.bincount(place, gold == RIGHT),
        "agreed": np.bincount(place, gold == guess),
        "options": np.bincount(place),
        "exact": wrong == 0,
        "questions": np.ones(len(wrong)),
    }
    return {name: of_questions(values, len(report["classes"])) for name, values in counted.items()}


def places(rows: pd.DataFrame) -> np.ndarray:
    """The number of each row's question, in the order in which they first occur."""
    return pd.factorize(rows[GROUP])[0]


def of_questions(values: np.ndarray, classes: int) -> csr_array:
    """A value of each question under the class that is right, `[questions, classes]`."""
    column = np.full(len(values), RIGHT)
    place = np.asarray(values, np.float64), column, np.arange(len(values) + 1)
    return csr_array(place, shape=(len(values), classes))


def score(metric: str, summed: Sums) -> np.ndarray:
    """F1 of the right options of all questions (F1a), the share of questions with no wrong row, accuracy.

    The definitions are MultiRC's (Khashabi et al. 2018, section 4.2).
    """
    parts = {name: value.sum(-1) for name, value in summed.items()}
    above, below = {
        "f1": (parts["right"], (parts["predicted"] + parts["gold"]) / 2),
        "exact": (parts["exact"], parts["questions"]),
        "accuracy": (parts["agreed"], parts["options"]),
    }[metric]
    return divide(above, below, empty=np.nan)


def predicted(logits: np.ndarray, given: Given) -> dict:
    """Label and prediction of each row, and its question."""
    return {**classification.predicted(logits, given), GROUP: list(given.aligned[GROUP])}


def row(logits: np.ndarray, given: Given) -> dict:
    """The same, with the scores of both classes."""
    return {**classification.row(logits, given), **predicted(logits, given)}


GROUPED = Task(
    told_by=GROUP,
    gold="label",
    metrics=("accuracy", "exact", "f1"),
    watched=lambda report: ("accuracy", "f1"),
    shown_as=("prediction", "probability"),
    reads=reads,
    added=added,
    score=score,
    predicted=predicted,
    row=row,
    shown=lambda *told: first(classification.shown(*told)),
)


def first(made: Mapping) -> dict:
    """The columns of the more probable class."""
    return {name: made[name] for name in GROUPED.shown_as}


PICK = ("pick", "exact", "overlap")


def picks(logits: np.ndarray, given: Given) -> dict:
    """Label and prediction of each row, how much more it is right than wrong, what picking it would score.

    Exact match and F1 are those of the option's text with the right answers of its question.
    """
    texts = list(zip(given.aligned[OPTION], given.aligned[ANSWERS], strict=True))
    found = predicted(logits, given)
    found["pick"] = logits[:, RIGHT] - logits[:, 1 - RIGHT]
    found["exact"] = [exact(*each) for each in texts]
    found["overlap"] = [overlap(*each) for each in texts]
    return found


def picked(rows: pd.DataFrame, report: Mapping) -> Added:
    """What each question adds by the option that is picked, of equals the first."""
    place = places(rows)
    order = np.lexsort((np.arange(len(rows)), -rows["pick"].to_numpy(), place))
    best = order[np.unique(place[order], return_index=True)[1]]
    counted = {
        "agreed": rows["label"].to_numpy()[best] == RIGHT,
        "exact": rows["exact"].to_numpy()[best],
        "overlap": rows["overlap"].to_numpy()[best],
        "questions": np.ones(len(best)),
    }
    return {name: of_questions(values, len(report["classes"])) for name, values in counted.items()}


def picked_score(metric: str, summed: Sums) -> np.ndarray:
    """Means over questions of exact match, F1 (Zhang et al. 2018), and of picks that are labelled right."""
    above = summed[{"f1": "overlap", "exact": "exact", "accuracy": "agreed"}[metric]]
    return divide(above.sum(-1), summed["questions"].sum(-1), empty=np.nan)


PICKED = replace(
    GROUPED,
    told_by=OPTION,
    reads=lambda report: (["label", "prediction", GROUP, *PICK], []),
    added=picked,
    score=picked_score,
    predicted=picks,
    row=lambda logits, given: {**row(logits, given), **picks(logits, given)},
)
