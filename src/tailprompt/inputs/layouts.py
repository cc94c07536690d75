"""How a row is laid out in each form of input: fixed token ids, and slots for the row's own texts.

`plain`: [CLS] text [SEP] (pair [SEP]), read at [CLS]. `prompted`: a template between [CLS] and [SEP], read at
its mask. `formatted`: the same as PPT builds it, with options and for a T5 too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from tailprompt.inputs.templates import LETTERS, letters_of, pieces
from tailprompt.inputs.tokens import tokenize
from tailprompt.model.backbones import sentinel

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SPACE = "▁"  # of SentencePiece


@dataclass(frozen=True)
class Layout:
    """Pieces in order, each a list of fixed ids or the name of a slot, and the segment of each.

    read: the number of the piece that the model reads the answer at.
    """

    pieces: list[list[int] | str]
    segments: list[int]
    read: int

    @property
    def slots(self) -> list[str]:
        return [piece for piece in self.pieces if isinstance(piece, str)]


def plain(
    tokenizer: PreTrainedTokenizerBase,
    template: str | None,
    *,
    paired: bool,
    options: int,
    language: str | None,
) -> Layout:
    """[CLS] text [SEP], then pair [SEP] as a second segment where the tokenizer has segments."""
    start, end = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
    if not paired:
        return Layout([start, "text", end], [0, 0, 0], 0)
    between = end * (tokenizer.num_special_tokens_to_add(pair=True) - 2)
    second = int("token_type_ids" in tokenizer.model_input_names)
    return Layout([start, "text", between, "pair", end], [0, 0, 0, second, second], 0)


def prompted(
    tokenizer: PreTrainedTokenizerBase, template: str, *, paired: bool, options: int, language: str | None
) -> Layout:
    """The template, whose words between two slots are tokenised as they stand (GLEE)."""
    parts: list[list[int] | str] = []
    for words, slot in pieces(template, paired=paired):
        parts += [tokenize(tokenizer, [words])[0]] if words.strip() else []
        parts += [slot] if slot else []
    return enclosed(tokenizer, parts)


def formatted(
    tokenizer: PreTrainedTokenizerBase, template: str, *, paired: bool, options: int, language: str | None
) -> Layout:
    """The template, whose single marks are pieces of the vocabulary, for rows with so many options (PPT)."""
    parts: list[list[int] | str] = []
    for words, slot in pieces(template, paired=paired, options=True):
        parts += [ids] if (ids := literal(tokenizer, words)) else []
        if slot == "choices":
            parts += lettered(tokenizer, language, options)
        elif slot:
            parts.append(slot)
    return enclosed(tokenizer, parts)


def enclosed(tokenizer: PreTrainedTokenizerBase, parts: list[list[int] | str]) -> Layout:
    """Parts of one segment with the mask's id, between what the tokenizer puts around a text.

    They are read at the mask; a T5, whose decoder answers, at its only place.
    """
    answer = parts.index("mask")
    parts = [*parts[:answer], [sentinel(tokenizer)], *parts[answer + 1 :]]
    if tokenizer.cls_token_id is None:
        return Layout(parts, [0] * len(parts), answer if tokenizer.mask_token_id is not None else 0)
    parts = [[tokenizer.cls_token_id], *parts, [tokenizer.sep_token_id]]
    return Layout(parts, [0] * len(parts), answer + 1)


def lettered(tokenizer: PreTrainedTokenizerBase, language: str, options: int) -> list[list[int] | str]:
    """`A. option.` for each option, in the marks of the language."""
    _, after, end = LETTERS[language]
    parts: list[list[int] | str] = []
    for number, letter in enumerate(letters_of(language, options, "a row's options")):
        before = bare(tokenizer, letter) + bare(tokenizer, after)
        parts += [before, option_slot(number), bare(tokenizer, end)]
    return parts


def option_slot(number: int) -> str:
    return f"option {number + 1}"


def literal(tokenizer: PreTrainedTokenizerBase, words: str) -> list[int]:
    """Ids of a template's own words: a mark by itself is bare, other words side by side are one run."""
    ids = []
    for alone, run in groupby(words.split(), key=lambda word: len(word) == 1 and not word.isalnum()):
        if alone:
            ids += [token for mark in run for token in bare(tokenizer, mark)]
        else:
            ids += spoken(tokenizer, [" ".join(run)])[0]
    return ids


def bare(tokenizer: PreTrainedTokenizerBase, piece: str) -> list[int]:
    """Ids of a mark or letter without the space that SentencePiece would put before it."""
    token = tokenizer.convert_tokens_to_ids(piece)
    return [token] if token != tokenizer.unk_token_id else spoken(tokenizer, [piece])[0]


def spoken(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Ids of texts, without the space that SentencePiece puts before Chinese as a piece of its own."""
    every, space = tokenize(tokenizer, texts), tokenizer.convert_tokens_to_ids(SPACE)
    if space == tokenizer.unk_token_id:  # no SentencePiece
        return every
    return [ids[1:] if ids[:1] == [space] and len(ids) > 1 else ids for ids in every]


LAYOUTS: dict[str, Callable[..., Layout]] = {
    "plain": plain,
    "pooled": plain,
    "prompted": prompted,
    "formatted": formatted,
}
