"""Token ids of many texts, in a file that all runs on a data set share.

Tokenising a data set takes seconds; laying out its ids as a run asks takes milliseconds. So the ids are kept,
and every run maps them into memory. The name of a file is a digest of all that its ids depend on, so that it
is never out of date; it may be removed at any time.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Int, UInt32

from tailprompt.files import whole

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase


BLOCK = 2**16  # sequences whose indices are in memory at once
CHUNK = 4096  # texts whose ids are lists at once, each of which takes far more than an id of an array
NEVER = "\uffff"  # no character, so that no text has it


class Ragged(NamedTuple):
    """Sequences of token ids: where each begins in `flat`, and how many ids it has."""

    flat: UInt32[np.ndarray, " total"]
    starts: Int[np.ndarray, " sequences"]
    lengths: Int[np.ndarray, " sequences"]

    def take(self, rows: Int[np.ndarray, " rows"]) -> Ragged:
        """The sequences of these numbers."""
        return Ragged(self.flat, self.starts[rows], self.lengths[rows])


def repeated(ids: list[int], rows: int) -> Ragged:
    """The same ids for each of `rows` sequences."""
    return Ragged(np.array(ids, np.uint32), np.zeros(rows, np.int64), np.full(rows, len(ids)))


def spans(
    starts: Int[np.ndarray, " sequences"], lengths: Int[np.ndarray, " sequences"]
) -> Int[np.ndarray, " total"]:
    """The indices start, start + 1, ... of each sequence, one sequence after the other."""
    found = np.repeat(starts - (lengths.cumsum() - lengths), lengths)
    found += np.arange(len(found))
    return found


def gathered(flat: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The items of `flat` in each sequence, end to end; indices are made of some sequences at a time."""
    out, at = np.empty(lengths.sum(), flat.dtype), 0
    for first in range(0, len(starts), BLOCK):
        block = slice(first, first + BLOCK)
        part = flat[spans(starts[block], lengths[block])]
        out[at : at + len(part)] = part
        at += len(part)
    return out


def tokenized(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], folder: Path | None = None) -> Ragged:
    """Ids of texts as `tokenize` makes them, from a file in `folder` if another run left them there.

    Otherwise they are made, and left there. A damaged file is made again. A text that stands several times,
    as a passage does with each of its questions, is tokenised and held once.
    """
    number = {text: n for n, text in enumerate(dict.fromkeys(texts))}
    if len(number) < len(texts):
        rows = np.fromiter((number[text] for text in texts), np.int64, len(texts))
        return tokenized(tokenizer, list(number), folder).take(rows)
    path = folder / f"{digest(tokenizer, texts)}.ids" if folder and len(texts) and tokenizer.is_fast else None
    held = path and read(path)
    if held is None:
        held = numbers(tokenizer, texts)
        if path:
            write(path, held)
    lengths = held[: len(texts)].astype(np.int64)
    return Ragged(held[len(texts) :], lengths.cumsum() - lengths, lengths)


def numbers(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> UInt32[np.ndarray, " numbers"]:
    """The number of ids of each text, then all ids. Lists of ids are held of a few texts at a time."""
    lengths, ids = [], []
    for start in range(0, len(texts), CHUNK):
        made = tokenize(tokenizer, texts[start : start + CHUNK])
        lengths.append(np.fromiter(map(len, made), np.uint32, len(made)))
        ids.append(np.fromiter(chain.from_iterable(made), np.uint32))
    return np.concatenate([np.zeros(0, np.uint32), *lengths, *ids])


def tokenize(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Ids of texts without special tokens; a literal `[MASK]` in a text is split like any other word."""
    if not len(texts):  # which it cannot take
        return []
    made = tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False)
    return without_special(tokenizer, texts, made["input_ids"]) if unigram(tokenizer) else made["input_ids"]


def unigram(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the pieces of texts are found by their probability, among which a T5 has `</s>` itself."""
    return tokenizer.is_fast and tokenizer.backend_tokenizer.model.__class__.__name__ == "Unigram"


def without_special(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], ids: list[list[int]]
) -> list[list[int]]:
    """The ids of texts, made again where a special token is written in one."""
    written = re.compile("|".join(map(re.escape, tokenizer.all_special_tokens)))
    if found := [number for number, text in enumerate(texts) if written.search(text)]:
        again = plainly(tokenizer).encode_batch([texts[number] for number in found])
        for number, made in zip(found, again, strict=True):
            ids[number] = made.ids
    return ids


def plainly(tokenizer: PreTrainedTokenizerBase) -> Tokenizer:
    """A tokenizer with the same ids, in which no text spells a special token."""
    from tokenizers import Tokenizer

    told = json.loads(tokenizer.backend_tokenizer.to_str())
    special, model = {*tokenizer.all_special_tokens}, told["model"]
    model["vocab"] = [[NEVER + piece if piece in special else piece, odds] for piece, odds in model["vocab"]]
    kept = [each for each in told["added_tokens"] if not each["special"]]
    return Tokenizer.from_str(
        json.dumps(told | {"added_tokens": kept, "post_processor": None, "truncation": None, "padding": None})
    )


def digest(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> str:
    """A digest of all that `tokenized` depends on, with the text of this module."""
    tokenizer.backend_tokenizer.no_truncation()  # else it says to what it cut and padded before, if it did
    tokenizer.backend_tokenizer.no_padding()
    parts = [
        Path(__file__).read_bytes(),
        " ".join(version(name) for name in ("tokenizers", "transformers")).encode(),
        tokenizer.backend_tokenizer.to_str().encode(),
        np.array([len(text) for text in texts], np.int64).tobytes(),
    ]
    whole = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts))
    for text in texts:
        whole.update(text.encode())
    return whole.hexdigest()[:32]


def write(path: Path, held: UInt32[np.ndarray, " numbers"]) -> None:
    """Write numbers and their checksum, and no more, so that every bit is checked."""
    with whole(path) as temporary:
        temporary.write_bytes(np.append(held, np.uint32(zlib.crc32(held))).data)


def read(path: Path) -> UInt32[np.ndarray, " numbers"] | None:
    """The numbers in a file, mapped into memory; None where there is no file, or a damaged one."""
    try:
        held, check = np.split(np.memmap(path, np.uint32, "r"), [-1])
    except (OSError, ValueError):  # no file, or none of whole numbers
        return None
    return held if len(held) and zlib.crc32(held) == check.item() else None
