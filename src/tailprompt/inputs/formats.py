"""Rows in PPT's formats: a sentence, a pair, or a question with options, around the place of the answer.

A pattern is a template with {text}, {pair}, {choices} and {mask}; the soft prompt goes before all of it. Ids
are built piece by piece: each text by itself, each run of words by itself, and a single mark or letter as
the bare piece of the vocabulary (SentencePiece would put a space before it). Only texts are ever cut, the
longest first, so the mask survives.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pandas as pd
import torch
from transformers import PreTrainedTokenizerBase

from tailprompt.errors import BadInput
from tailprompt.inputs.encode import Examples, Layout, build, encode_words, pack, room, tokenize
from tailprompt.inputs.patterns import LETTERS, has_choices, letters_of
from tailprompt.inputs.template import pieces
from tailprompt.model.backbones import sentinel

SPACE = "▁"


def answer_ids(
    words: dict[str, str], tokenizer: PreTrainedTokenizerBase, *, pattern: str, language: str, source: str
) -> list[list[int]]:
    """Token ids that score each class: of its word, or of its option's letter where the pattern has options.

    A masked language model scores all tokens of a word, a T5 the first, which is what it decodes there.
    Raises BadInput for more classes than letters, and for classes that would always score alike.
    """
    if has_choices(pattern):
        letters = letters_of(language, len(words), "the classes")
        ids = [bare(tokenizer, letter) for letter in letters]
        words = dict(zip(words, letters, strict=True))
    elif tokenizer.mask_token_id is not None:
        return encode_words(words, tokenizer, source=source)
    else:
        ids = [word[:1] for word in spoken(tokenizer, list(words.values()))]
    apart(words, ids, tokenizer, source)
    return ids


def apart(words: dict[str, str], ids: list[list[int]], tokenizer, source: str) -> None:
    """Raise BadInput where a word has no token but unknown or special ones, or two classes the same."""
    seen: dict[tuple, str] = {}
    for (name, word), tokens in zip(words.items(), map(tuple, ids), strict=True):
        if not set(tokens) - {*tokenizer.all_special_ids}:
            raise BadInput(
                f"{source}: the backbone has no token but special ones for '{word}' of class '{name}'; "
                "choose another word"
            )
        if tokens in seen:
            raise BadInput(
                f"{source}: the words of classes '{seen[tokens]}' and '{name}' begin with the same token; "
                "choose another word for one"
            )
        seen[tokens] = name


def encode(
    table: pd.DataFrame,
    tokenizer: PreTrainedTokenizerBase,
    *,
    pattern: str,
    language: str,
    words: dict[str, str],
    max_length: int,
    positions: int | float,
) -> Examples:
    """Rows (id, text, label, perhaps pair or choices) in a pattern, at most `max_length` tokens each.

    words: each class's word, the options of a row without `choices`. positions: what the backbone has left
    beside the soft prompt. Raises BadInput for a pattern that does not fit the rows or leaves no room.
    """
    if max_length > positions:
        raise BadInput(
            f"max_length {max_length} is more than the {positions} positions of the backbone beside its soft "
            "prompt; lower it, or length"
        )
    if "pair" in table and "choices" in table and "{pair}" not in pattern:
        pattern = pattern.replace("{text}", "{text} ; {pair}")  # a passage and a question (code of PPT)
    options = options_of(table, words) if has_choices(pattern) else [[]] * len(table)
    found = pieces(pattern, paired="pair" in table, options=True)
    layouts = {n: layout(found, tokenizer, language, n) for n in sorted({len(given) for given in options})}
    budgets = {n: room(shape, max_length, pattern) for n, shape in layouts.items()}
    slots = [slot for slot in ("text", "pair") if f"{{{slot}}}" in pattern]
    texts = [tokenize(tokenizer, table[slot].tolist()) for slot in slots]
    rows = []
    for *ids, given in zip(*texts, options, strict=True):
        row = dict(zip(slots, ids, strict=True)) | dict(enumerate_ids(tokenizer, given))
        rows.append(build(layouts[len(given)], row, budgets[len(given)]))
    examples = pack(rows, table["label"].tolist(), table["id"].tolist(), tokenizer.pad_token_id)
    if not has_choices(pattern):
        return examples
    return replace(examples, options=torch.tensor([len(given) for given in options]))


def options_of(table: pd.DataFrame, words: dict[str, str]) -> list[list[str]]:
    """The options of each row: its own, else the classes' words (PPT section 3.3)."""
    if "choices" not in table:
        return [list(words.values())] * len(table)
    options = [list(given) for given in table["choices"]]
    for name, label, given in zip(table["id"], table["label"], options, strict=True):
        if not label < len(given) <= len(words):
            raise BadInput(
                f"{name} has {len(given)} options and the right one is number {label + 1}; there must be "
                f"from {label + 1} to {len(words)}, the classes"
            )
    return options


def enumerate_ids(tokenizer: PreTrainedTokenizerBase, options: list[str]) -> list[tuple[str, list[int]]]:
    """(slot, ids) of each option."""
    return [(option_slot(number), ids) for number, ids in enumerate(tokenize(tokenizer, options))]


def option_slot(number: int) -> str:
    return f"option {number + 1}"


def layout(found: list, tokenizer: PreTrainedTokenizerBase, language: str, options: int) -> Layout:
    """The pieces of a pattern for rows with so many options, between what the tokenizer puts around a text.

    It is read at the mask; a T5, whose decoder answers, at its only place.
    """
    parts: list = [] if tokenizer.cls_token_id is None else [[tokenizer.cls_token_id]]
    read = 0
    for words, slot in found:
        parts += [ids] if (ids := literal(tokenizer, words)) else []
        if slot == "mask":
            read = len(parts) if tokenizer.mask_token_id is not None else 0
            parts.append([sentinel(tokenizer)])
        elif slot == "choices":
            parts += lettered(tokenizer, language, options)
        elif slot is not None:
            parts.append(slot)
    parts += [] if tokenizer.cls_token_id is None else [[tokenizer.sep_token_id]]
    return Layout(parts, [0] * len(parts), read)


def lettered(tokenizer: PreTrainedTokenizerBase, language: str, options: int) -> list:
    """`A. option.` for each option, in the marks of the language."""
    _, after, end = LETTERS[language]
    parts: list = []
    for number, letter in enumerate(letters_of(language, options, "a row's options")):
        before = bare(tokenizer, letter) + bare(tokenizer, after)
        parts += [before, option_slot(number), bare(tokenizer, end)]
    return parts


def literal(tokenizer: PreTrainedTokenizerBase, words: str) -> list[int]:
    """Ids of a pattern's own words: a mark that stands alone is bare, what stands together one run."""
    ids = []
    for alone, run in groupby(words.split(), key=lambda word: len(word) == 1 and not word.isalnum()):
        if alone:
            ids += [token for mark in run for token in bare(tokenizer, mark)]
        else:
            ids += spoken(tokenizer, [" ".join(run)])[0]
    return ids


def bare(tokenizer: PreTrainedTokenizerBase, piece: str) -> list[int]:
    """Ids of a mark or letter without a space before it."""
    token = tokenizer.convert_tokens_to_ids(piece)
    return [token] if token != tokenizer.unk_token_id else spoken(tokenizer, [piece])[0]


def spoken(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[list[int]]:
    """Ids of texts; a space that SentencePiece puts before Chinese as a piece of its own is left out."""
    space = tokenizer.convert_tokens_to_ids(SPACE)
    return [ids[1:] if ids[:1] == [space] and len(ids) > 1 else ids for ids in tokenize(tokenizer, texts)]
