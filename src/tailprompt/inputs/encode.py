"""Rows of a data set become token ids, in the layout of their input form; so do the words of its classes.

Only texts are ever cut, the longest first, never a template or options around them, so the mask survives.
Special tokens written in a text are text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int

from tailprompt.errors import BadInput, counted, named
from tailprompt.inputs.layouts import LAYOUTS, Layout, bare, option_slot, spoken
from tailprompt.inputs.templates import has_choices, letters_of, with_pair
from tailprompt.inputs.texts import Examples
from tailprompt.inputs.tokens import Ragged, gathered, repeated, tokenize, tokenized
from tailprompt.model.limits import check_length

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Part(NamedTuple):
    """Rows of one layout, end to end. rows: their numbers. truncated: how many had a text cut."""

    rows: Int[np.ndarray, " rows"]
    tokens: Int[np.ndarray, " total"]  # in 32 bits, and segments in 8, as a million rows have many
    segments: Int[np.ndarray, " total"]
    lengths: Int[np.ndarray, " rows"]
    position: Int[np.ndarray, " rows"]
    truncated: int


def encode(
    table: pd.DataFrame,
    tokenizer: PreTrainedTokenizerBase,
    *,
    input: str,
    template: str | None = None,
    language: str | None = None,
    words: dict[str, str] | None = None,
    max_length: int,
    positions: int | float,
    prompt_length: int = 0,
    kept: Path | None = None,
) -> Examples:
    """Rows (id, text, label, perhaps pair or choices) in an input form, at most `max_length` tokens each.

    template: what `prompted` and `formatted` input put a text into; where it shows options, a row without
    `choices` has the classes' words, lettered in `language`. positions: of the backbone, of which a soft
    prompt takes `prompt_length`. kept: a folder of texts' token ids, which all runs share. Raises BadInput
    for a template or options that do not fit the rows, and where `max_length` is more than the positions or
    leaves no room for texts.
    """
    check_length(max_length, positions, prompt_length)
    form, paired = named(LAYOUTS, input, "input"), "pair" in table
    lettered = input == "formatted" and has_choices(template)
    if input == "formatted" and paired and "choices" in table:
        template = with_pair(template)
    options = options_of(table, words or {}) if lettered else [[]] * len(table)
    counts = np.array([len(given) for given in options], np.int64)
    layouts = {
        count: form(tokenizer, template, paired=paired, options=count, language=language)
        for count in sorted({*counts.tolist()} or {0})
    }
    budgets = {count: room(layout, max_length, template) for count, layout in layouts.items()}
    slots = [slot for slot in ("text", "pair") if any(slot in each.slots for each in layouts.values())]
    texts = contents(table[slots], options, tokenizer, kept)
    parts = [
        build(layout, texts, np.flatnonzero(counts == count), budgets[count])
        for count, layout in layouts.items()
    ]
    examples = pack(
        parts, table["label"].to_numpy(np.int64), list(table["id"]), tokenizer.pad_token_id, max_length
    )
    return replace(examples, options=torch.from_numpy(counts)) if lettered else examples


def options_of(table: pd.DataFrame, words: dict[str, str]) -> list[list[str]]:
    """The options of each row: its own, else the classes' words (PPT section 3.3)."""
    if "choices" not in table:
        return [list(words.values())] * len(table)
    options = [list(given) for given in table["choices"]]
    for name, label, given in zip(table["id"], table["label"], options, strict=True):
        if not label < len(given) <= len(words):
            raise BadInput(
                f"{name} has {counted(len(given), 'option')} and the right one is number {label + 1}; "
                f"there must be from {label + 1} to {len(words)}, the classes"
            )
    return options


def contents(
    texts: pd.DataFrame, options: list[list[str]], tokenizer: PreTrainedTokenizerBase, kept: Path | None
) -> dict[str, Ragged]:
    """Token ids of each row's texts and options, by slot; of an option that a row lacks, those of another."""
    found = {slot: tokenized(tokenizer, texts[slot].tolist(), kept) for slot in texts}
    different = sorted({*chain.from_iterable(options)})  # options that all rows share are tokenised once
    ids, number = tokenized(tokenizer, different, kept), {option: n for n, option in enumerate(different)}
    for place in range(max(map(len, options), default=0)):
        chosen = [number[given[place]] if place < len(given) else 0 for given in options]
        found[option_slot(place)] = ids.take(np.array(chosen))
    return found


def room(layout: Layout, max_length: int, template: str | None) -> int:
    """Tokens that a layout leaves for texts; raises BadInput where a text would get none."""
    left = max_length - sum(len(piece) for piece in layout.pieces if isinstance(piece, list))
    if left < len(layout.slots):
        shown = "plain input" if template is None else f"template '{template}'"
        raise BadInput(
            f"{shown} leaves {max(left, 0)} of max_length {max_length} tokens for text; "
            f"raise max_length{'' if template is None else ' or shorten it'}"
        )
    return left


def build(layout: Layout, texts: dict[str, Ragged], rows: Int[np.ndarray, " rows"], budget: int) -> Part:
    """These rows in a layout. texts: token ids of all rows, by slot, of which a row keeps `budget`."""
    pieces = [
        texts[piece].take(rows) if isinstance(piece, str) else repeated(piece, len(rows))
        for piece in layout.pieces
    ]
    lengths = np.stack([piece.lengths for piece in pieces], axis=1)
    slots = [number for number, piece in enumerate(layout.pieces) if isinstance(piece, str)]
    long = np.flatnonzero(lengths[:, slots].sum(1) > budget)
    for row in long:
        lengths[row, slots] = shorten(lengths[row, slots].tolist(), budget)
    before = np.cumsum([0, *(len(piece.flat) for piece in pieces[:-1])])
    starts = np.stack([piece.starts for piece in pieces], axis=1) + before
    flat = np.concatenate([piece.flat for piece in pieces])
    return Part(
        rows=rows,
        tokens=gathered(flat, starts.ravel(), lengths.ravel()).astype(np.int32),
        segments=np.tile(np.array(layout.segments, np.int8), len(rows)).repeat(lengths.ravel()),
        lengths=lengths.sum(1),
        position=lengths[:, : layout.read].sum(1),
        truncated=len(long),
    )


def shorten(lengths: Sequence[int], budget: int) -> list[int]:
    """Lengths after tokens are dropped from the longest text, of equals from the last (code of GLEE)."""
    left = budget
    for done, length in enumerate(sorted(lengths)):
        level, spare = divmod(left, len(lengths) - done)
        if length > level:
            break
        left -= length
    else:
        return list(lengths)
    longer = [number for number, length in enumerate(lengths) if length > level]
    return [min(length, level + (number in longer[:spare])) for number, length in enumerate(lengths)]


def pack(
    parts: list[Part], labels: Int[np.ndarray, "rows *labels"], names: Sequence[str], pad: int, most: int
) -> Examples:
    """The rows of all parts as examples, in the order of labels and names."""
    order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")
    tokens, segments, lengths, position = (
        np.concatenate([getattr(part, key) for part in parts]) if len(parts) > 1 else getattr(parts[0], key)
        for key in ("tokens", "segments", "lengths", "position")
    )
    if len(parts) > 1:
        starts = lengths.cumsum() - lengths
        tokens, segments = (gathered(flat, starts[order], lengths[order]) for flat in (tokens, segments))
    return Examples(
        tokens=torch.from_numpy(tokens),
        segments=torch.from_numpy(segments),
        starts=torch.from_numpy(np.cumsum([0, *lengths[order]])),
        lengths=torch.from_numpy(lengths[order]),
        position=torch.from_numpy(position[order]),
        labels=torch.from_numpy(labels.copy()),
        names=names,
        pad=pad,
        most=most,
        truncated=sum(part.truncated for part in parts),
    )


def encode_words(
    words: dict[str, str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    template: str | None = None,
    language: str | None = None,
    source: str = "verbalizer",
) -> list[list[int]]:
    """Token ids that score each class, in class order.

    They are those of its word: all for a masked language model, the first for a T5, which is what it decodes;
    where `template` shows options, that of its option's letter in `language`. source: where the words are
    from, for messages. Raises BadInput for more classes than letters, for a word of unknown tokens only, and
    for two classes that would always score alike.
    """
    if has_choices(template or ""):
        letters = letters_of(language, len(words), "the classes")
        words, ids = dict(zip(words, letters, strict=True)), [bare(tokenizer, letter) for letter in letters]
    elif tokenizer.mask_token_id is not None:
        ids = tokenize(tokenizer, list(words.values()))
    else:
        ids = [word[:1] for word in spoken(tokenizer, list(words.values()))]
    check_words(words, ids, tokenizer, source)
    return ids


def check_words(
    words: dict[str, str], ids: list[list[int]], tokenizer: PreTrainedTokenizerBase, source: str
) -> None:
    """Raise BadInput where a word has only unknown or special tokens, or two classes have the same tokens."""
    seen: dict[tuple, str] = {}
    for (name, word), tokens in zip(words.items(), ids, strict=True):
        if not {*tokens} - {*tokenizer.all_special_ids}:
            raise BadInput(
                f"{source}: the word '{word}' of class '{name}' has no token that the backbone knows; "
                "choose another word"
            )
        key = tuple(sorted(tokens))  # a class's score is the mean over its tokens
        if key in seen:
            shown = " ".join(tokenizer.convert_ids_to_tokens(tokens))
            raise BadInput(
                f"{source}: classes '{seen[key]}' and '{name}' are scored by the same tokens ({shown}); "
                "choose another word for one"
            )
        seen[key] = name
