"""Sentences of words become pieces, and the first piece of each word has the word's tag (P-Tuning v2's code).

Each word is tokenised by itself, as a fast tokenizer does that is given words; for byte-level BPE (RoBERTa)
a blank comes before it. A sentence that has too many pieces is read in windows that overlap by a quarter, and
each word is answered by the one window in which it has more context, so no word is left without an answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int

from tailprompt.inputs.encode import build, pack, room
from tailprompt.inputs.layouts import LAYOUTS
from tailprompt.inputs.texts import UNLABELLED, Examples
from tailprompt.inputs.tokens import Ragged, spans, tokenized
from tailprompt.model.limits import check_length

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

OVERLAP = 4  # windows share a quarter of their pieces


class Windows(NamedTuple):
    """Of each window its sentence, its words first..last (exclusive), and begin..end, those it answers.

    Words are numbered through all sentences.
    """

    sentence: Int[np.ndarray, " windows"]
    first: Int[np.ndarray, " windows"]
    last: Int[np.ndarray, " windows"]
    begin: Int[np.ndarray, " windows"]
    end: Int[np.ndarray, " windows"]


def encode_sentences(
    table: pd.DataFrame,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int,
    positions: int | float,
    prompt_length: int = 0,
    kept: Path | None = None,
) -> Examples:
    """Rows (id, words, perhaps tags, and pair of semantic roles) as windows of at most `max_length` tokens.

    Without tags those of all words are 0. A word of more pieces than fit keeps its first ones, and is what
    `truncated` counts. `names` has the id of a row once for each of its windows, which stand in order. For
    the other arguments see `encode`.
    """
    check_length(max_length, positions, prompt_length)
    layout = LAYOUTS["plain"](tokenizer, None, paired="pair" in table, options=0, language=None)
    budget = room(layout, max_length, None)
    sizes = np.array([len(words) for words in table["words"]], np.int64)
    pieces, texts = word_pieces(tokenizer, [word for words in table["words"] for word in words], kept), {}
    most = np.full(len(table), budget)
    if "pair" in table:
        pair = word_pieces(tokenizer, table["pair"].tolist(), kept)
        texts["pair"] = pair._replace(lengths=np.minimum(pair.lengths, budget // 2))
        most -= texts["pair"].lengths
    short = pieces._replace(lengths=np.minimum(pieces.lengths, most.repeat(sizes)))
    windows = windows_of(short.lengths, sizes, most)
    texts = {slot: each.take(windows.sentence) for slot, each in texts.items()}
    texts["text"], words, firsts = joined(short, windows)
    part = build(layout, texts, np.arange(len(windows.sentence)), budget)
    tags = np.concatenate([np.zeros(0, np.int64), *table["tags"]]) if "tags" in table else 0 * short.lengths
    labels = np.full((len(part.lengths), part.lengths.max(initial=1)), UNLABELLED, np.int64)
    at = np.arange(len(labels)).repeat(windows.last - windows.first)
    mine = (words >= windows.begin[at]) & (words < windows.end[at])
    labels[at[mine], len(layout.pieces[0]) + firsts[mine]] = tags[words[mine]]
    part = part._replace(truncated=int((short.lengths < pieces.lengths).sum()))
    names = table["id"].iloc[windows.sentence].tolist()
    made = pack([part], labels, names, tokenizer.pad_token_id, max_length)
    return replace(made, unit="token")


def word_pieces(tokenizer: PreTrainedTokenizerBase, words: Sequence[str], kept: Path | None) -> Ragged:
    """The pieces of each word; the unknown token for a word of none, such as a control character."""
    different = list(dict.fromkeys(words))
    blank = " " if byte_level(tokenizer) else ""
    made = tokenized(tokenizer, [blank + word for word in different], kept)
    empty = made.lengths == 0
    starts = np.where(empty, len(made.flat), made.starts)
    flat = np.append(made.flat, np.uint32(tokenizer.unk_token_id))
    number = {word: n for n, word in enumerate(different)}
    ids = np.array([number[word] for word in words], np.int64)
    return Ragged(flat, starts, np.maximum(made.lengths, 1)).take(ids)


def byte_level(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the pieces of a word differ with the blank before it, as those of GPT-2 and RoBERTa do."""
    return '"ByteLevel"' in json.dumps(json.loads(tokenizer.backend_tokenizer.to_str())["pre_tokenizer"])


def windows_of(
    lengths: Int[np.ndarray, " words"],
    sizes: Int[np.ndarray, " sentences"],
    most: Int[np.ndarray, " sentences"],
) -> Windows:
    """The windows of sentences of `sizes` words, each of at most `most` pieces."""
    ends, found = np.append(0, lengths.cumsum()), []
    for sentence, (last, size, left) in enumerate(zip(sizes.cumsum(), sizes, most, strict=True)):
        start = int(last - size)
        found += [(sentence, *each) for each in cut(ends[start : last + 1], start, int(left))]
    return Windows(*np.array(found, np.int64).reshape(-1, 5).T)


def cut(ends: Int[np.ndarray, " ends"], start: int, most: int) -> list[tuple[int, int, int, int]]:
    """First, last, begin and end of each window of a sentence, whose words are numbered from `start`.

    ends: the pieces before each word, and after the last.
    """
    first, begin, found, words = 0, 0, [], len(ends) - 1
    while ends[-1] - ends[first] > most:
        last = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
        after = max(first + 1, int(np.searchsorted(ends, ends[last] - most // OVERLAP)))
        middle = int(np.searchsorted(ends, (ends[after] + ends[last] + 1) // 2))
        found.append((start + first, start + last, start + begin, start + middle))
        first, begin = after, middle
    return [*found, (start + first, start + words, start + begin, start + words)]


def joined(
    pieces: Ragged, windows: Windows
) -> tuple[Ragged, Int[np.ndarray, " all"], Int[np.ndarray, " all"]]:
    """The pieces of each window; the words of all windows; and the pieces before each in its window."""
    counts = windows.last - windows.first
    words = spans(windows.first, counts)
    lengths = pieces.lengths[words]
    ends = np.append(0, lengths.cumsum())
    starts = ends[counts.cumsum() - counts]
    flat = pieces.flat[spans(pieces.starts[words], lengths)]
    return Ragged(flat, starts, ends[counts.cumsum()] - starts), words, ends[:-1] - starts.repeat(counts)
