"""Questions with a passage each; a long one is read in windows (code of P-Tuning v2: qa/dataset.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int

from tailprompt.errors import BadInput, counted, few
from tailprompt.inputs.encode import build, pack, room
from tailprompt.inputs.layouts import Layout, plain
from tailprompt.inputs.texts import Examples
from tailprompt.inputs.tokens import Ragged, spans, tokenized
from tailprompt.model.limits import check_length

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

NOWHERE = 0  # the token that is the first and last of no answer: [CLS]


class Located(NamedTuple):
    """Token ids of passages, and where each token begins and ends in its passage, in characters."""

    tokens: Ragged
    starts: Int[np.ndarray, " total"]
    ends: Int[np.ndarray, " total"]


class Windows(NamedTuple):
    """Of each window its row, the first of its passage's tokens, how many, and the place of the first."""

    row: Int[np.ndarray, " windows"]
    first: Int[np.ndarray, " windows"]
    count: Int[np.ndarray, " windows"]
    at: Int[np.ndarray, " windows"]


@dataclass(frozen=True)
class Passages:
    """What leads from tokens of windows back to the characters of passages (`tasks.spans.Aligned`)."""

    windows: Windows
    located: Located
    passages: Sequence[str]
    answers: Sequence[Sequence[str]]
    n_best: int
    longest: int
    unanswerable: bool
    threshold: float | None

    def characters(self, window: int) -> tuple[int, np.ndarray, np.ndarray]:
        """The place of a window's first token of the passage, and where each begins and ends in it."""
        row, first, count, at = (int(each[window]) for each in self.windows)
        begin = int(self.located.tokens.starts[row]) + first
        there = slice(begin, begin + count)
        return at, self.located.starts[there], self.located.ends[there]


def encode_questions(
    table: pd.DataFrame,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int,
    positions: int | float,
    prompt_length: int = 0,
    stride: int,
    n_best: int,
    longest_answer: int,
    null_threshold: float | None,
    unanswerable: bool,
    kept: Path | None = None,
) -> Examples:
    """Rows (id, text, pair, perhaps answers and starts) as windows of at most `max_length` tokens.

    Two windows of a passage share `stride` tokens, and `names` has the id of a row once for each of its
    windows. labels: the first and last token of a row's first answer in each window, 0 where the window does
    not hold all of it. Raises BadInput for a question that leaves no room, or a tokenizer without offsets.
    """
    check_length(max_length, positions, prompt_length)
    layout = plain(tokenizer, None, paired=True, options=0, language=None)
    budget = room(layout, max_length, None)
    questions = tokenized(tokenizer, table["text"].tolist(), kept)
    check_room(table, budget - questions.lengths, stride, max_length)
    located = locate(tokenizer, table["pair"].tolist())
    windows = cut(located.tokens.lengths, budget - questions.lengths, stride, layout, questions)
    pieces = located.tokens.take(windows.row)
    pieces = pieces._replace(starts=pieces.starts + windows.first, lengths=windows.count)
    part = build(
        layout, {"text": questions.take(windows.row), "pair": pieces}, np.arange(len(windows.row)), budget
    )
    answers = table["answers"] if "answers" in table else [[]] * len(table)
    starts = table["starts"] if "starts" in table else [[]] * len(table)
    labels = ends_of(windows, located, [first_span(*each) for each in zip(starts, answers, strict=True)])
    aligned = Passages(
        windows,
        located,
        table["pair"].tolist(),
        list(answers),
        n_best=n_best,
        longest=longest_answer,
        unanswerable=unanswerable,
        threshold=null_threshold,
    )
    names = table["id"].to_numpy()[windows.row].tolist()
    examples = pack([part], labels, names, tokenizer.pad_token_id, max_length)
    return replace(examples, unit="span", aligned=aligned)


def check_room(table: pd.DataFrame, left: Int[np.ndarray, " rows"], stride: int, max_length: int) -> None:
    """Raise BadInput where a question leaves a passage no more tokens than two windows share."""
    long = left <= stride
    if long.any():
        raise BadInput(
            f"{counted(long.sum(), 'question', 'leave')} the passage no more tokens of max_length "
            f"{max_length} than the "
            f"{stride} that two windows share ({few(list(table['id'][long]))}); shorten them, raise "
            "max_length, or lower stride"
        )


def locate(tokenizer: PreTrainedTokenizerBase, passages: Sequence[str]) -> Located:
    """Token ids of passages and their places; a passage of several rows is tokenised once."""
    if not tokenizer.is_fast:
        raise BadInput(f"{type(tokenizer).__name__} does not say where its tokens are; a fast tokenizer does")
    number = {passage: n for n, passage in enumerate(dict.fromkeys(passages))}
    made = tokenizer(
        list(number) or [""],
        add_special_tokens=False,
        split_special_tokens=True,
        return_offsets_mapping=True,
        verbose=False,
    )
    lengths = np.array([len(ids) for ids in made["input_ids"]], np.int64)
    flat = np.fromiter(chain.from_iterable(made["input_ids"]), np.uint32)
    offsets = np.array([*chain.from_iterable(made["offset_mapping"])], np.int32).reshape(-1, 2)
    rows = np.array([number[passage] for passage in passages], np.int64)
    return Located(Ragged(flat, lengths.cumsum() - lengths, lengths).take(rows), *offsets.T.copy())


def cut(
    lengths: Int[np.ndarray, " rows"],
    left: Int[np.ndarray, " rows"],
    stride: int,
    layout: Layout,
    questions: Ragged,
) -> Windows:
    """The windows of passages: each begins `left - stride` tokens after the one before it."""
    steps = left - stride
    counts = 1 + np.maximum(0, -(-(lengths - left) // steps))
    row = np.arange(len(lengths)).repeat(counts)
    first = spans(np.zeros_like(counts), counts) * steps[row]
    before = sum(len(piece) for piece in layout.pieces[:-1] if not isinstance(piece, str))
    return Windows(row, first, np.minimum(left[row], lengths[row] - first), before + questions.lengths[row])


def first_span(starts: Sequence[int], answers: Sequence[str]) -> tuple[int, int]:
    """The characters of the first right answer, which training learns; -1 and -1 without one."""
    return (int(starts[0]), int(starts[0]) + len(answers[0])) if len(starts) else (-1, -1)


def ends_of(
    windows: Windows, located: Located, characters: Sequence[tuple[int, int]]
) -> Int[np.ndarray, "windows 2"]:
    """The first and last token of each row's answer in each window; NOWHERE unless it holds all of it."""
    labels = np.full((len(windows.row), 2), NOWHERE, np.int64)
    for window, (row, first, count, at) in enumerate(zip(*windows, strict=True)):
        start, end = characters[row]
        begin = located.tokens.starts[row] + first
        starts, ends = (each[begin : begin + count] for each in (located.starts, located.ends))
        if start < 0 or not count or starts[0] > start or ends[-1] < end:
            continue
        labels[window] = at + starts.searchsorted(start, "right") - 1, at + ends.searchsorted(end)
    return labels
