"""Spans: the answer to a question is a piece of its passage, or there is none (SQuAD 1.1 and 2.0).

A passage is read in windows, each with logits of every token to be the first and the last of the answer. The
best pair of all windows is the answer, unless the logits of none are better by more than a threshold. This is
the post-processing of the released code (tasks/qa/utils_qa.py), which is transformers' own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from tailprompt.tasks.classification import divide
from tailprompt.tasks.task import Added, Given, Sums, Task
from tailprompt.tasks.texts import exact, overlap

ANSWERS = "answers"
KINDS = ["answerable", "unanswerable"]


class Aligned(Protocol):
    """What a split's input keeps, to find its way back from tokens.

    n_best: how many first and last tokens are combined. longest: the most tokens of an answer. threshold: how
    much better no answer must be; None where there always is one.
    """

    n_best: int
    longest: int
    threshold: float | None
    passages: Sequence[str]
    answers: Sequence[Sequence[str]]

    def characters(self, window: int) -> tuple[int, np.ndarray, np.ndarray]:
        """The place of a window's first token of the passage, and where each begins and ends in it."""
        ...


class Found(NamedTuple):
    """The best answer of a row: its characters in the passage, the sum of its logits, and that of none."""

    start: int
    end: int
    score: float
    none: float


def best(logits: np.ndarray, windows: Sequence[int], aligned: Aligned) -> Found:
    """The best answer in the windows of one row. logits: `[windows of the split, tokens, 2]`.

    Of a row without any possible answer, -1 and -1 with the score of minus infinity.
    """
    found, none = (-1, -1, -np.inf), np.inf
    for window in windows:
        at, starts, ends = aligned.characters(window)
        first, last = logits[window, : at + len(starts) + 1].T  # with the mark after the passage
        none = min(none, float(first[0] + last[0]))
        for score, a, b in pairs(first, last, at, aligned):
            if ends[b - at] > starts[a - at]:
                found = max(found, (int(starts[a - at]), int(ends[b - at]), score), key=lambda one: one[2])
                break  # the pairs of a window come best first
    return Found(*found, none)


def pairs(first: np.ndarray, last: np.ndarray, at: int, aligned: Aligned) -> Iterator[tuple[float, int, int]]:
    """(score, first token, last token) of the possible answers in a window, the best first.

    at: where its passage begins, before the last token. Those outside of it are among the best that are
    combined, and no answers, as in the released code.
    """
    a = np.argsort(-first, kind="stable")[: aligned.n_best][:, None]
    b = np.argsort(-last, kind="stable")[: aligned.n_best][None]
    possible = (b >= a) & (b - a < aligned.longest) & (a >= at) & (b < len(last) - 1)
    scores = np.where(possible, first[a] + last[b], -np.inf)
    for place in np.argsort(-scores, axis=None, kind="stable")[: possible.sum()]:
        row, column = divmod(int(place), scores.shape[1])
        yield float(scores[row, column]), int(a[row, 0]), int(b[0, column])


def predicted(logits: np.ndarray, given: Given) -> dict:
    """The right answers of each row, and the one that is given: its text, its characters and its scores.

    none: by how much no answer is better. An answer that is not given is empty, from -1 to -1.
    """
    aligned, windows = given.aligned, {}
    for number, name in enumerate(given.names):
        windows.setdefault(name, []).append(number)
    found = [best(logits.astype(np.float64), rows, aligned) for rows in windows.values()]
    better = np.array([each.none - each.score for each in found])
    kept = ~declined(better, aligned.threshold)
    start = np.where(kept, [each.start for each in found], -1)
    end = np.where(kept, [each.end for each in found], -1)
    cut = zip(aligned.passages, start, end, strict=True)
    return {
        ANSWERS: [list(each) for each in aligned.answers],
        "prediction": [passage[a:b] if a >= 0 else "" for passage, a, b in cut],
        "start": start,
        "end": end,
        "score": [each.score for each in found],
        "none": better,
    }


def declined(better: np.ndarray, threshold: float | None) -> np.ndarray:
    """Whether none is the answer: it is better by more than the threshold, or nothing else is possible."""
    return np.isposinf(better) | (better > (np.inf if threshold is None else threshold))


def added(rows: pd.DataFrame, report: Mapping) -> Added:
    """Exact matches, overlaps (token F1) and examples, of rows with an answer and of rows without one."""
    texts = list(zip(rows["prediction"], rows[ANSWERS], strict=True))
    kind = np.array([len(right) == 0 for _, right in texts], np.int64)
    counted = {
        "exact": [exact(*each) for each in texts],
        "overlap": [overlap(*each) for each in texts],
        "examples": np.ones(len(texts)),
    }
    place = kind, np.arange(len(texts) + 1)
    shape = len(texts), len(report["classes"])
    return {name: csr_array((np.asarray(each), *place), shape=shape) for name, each in counted.items()}


def score(metric: str, summed: Sums) -> np.ndarray:
    """The mean exact match or token F1 (Rajpurkar et al. 2016, section 6.1)."""
    above = summed[{"f1": "overlap", "exact": "exact"}[metric]]
    return divide(above.sum(-1), summed["examples"].sum(-1), empty=np.nan)


def shown(logits: np.ndarray, given: Given, rows: pd.DataFrame, classes: Sequence[str]) -> dict:
    """The answer of each row, its characters in the passage, and how much better it is than none."""
    made = predicted(logits, given)
    return {
        "answer": made["prediction"],
        "answer_start": made["start"],
        "answer_end": made["end"],
        "margin": (-np.asarray(made["none"])).round(6),
    }


SPANS = Task(
    told_by=ANSWERS,
    gold=ANSWERS,
    metrics=("exact", "f1"),
    watched=("exact", "f1"),
    shown_as=("answer", "answer_start", "answer_end", "margin"),
    reads=lambda report: ([ANSWERS, "prediction"], []),
    added=added,
    score=score,
    predicted=predicted,
    row=predicted,
    shown=shown,
    unit="span",
    outputs=lambda classes: ["first", "last"],
    outputs_of=lambda classes, name: [0, 1],
)
