"""Rows of a data set become token ids, in the layout of their input form; so do the words of its classes.

Only texts are ever cut, the longest first, never a template or options around them, so the mask survives.
Special tokens written in a text are text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from tailprompt.errors import BadInput, named
from tailprompt.inputs.layouts import LAYOUTS, Layout, bare, option_slot, spoken, tokenize
from tailprompt.inputs.templates import has_choices, letters_of, with_pair
from tailprompt.model.limits import check_length

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Examples:
    """Token ids of all examples end to end, so that a few operations on the device cut out a batch."""

    tokens: Int[Tensor, " total"]
    segments: Int[Tensor, " total"]
    starts: Int[Tensor, " examples"]
    lengths: Int[Tensor, " examples"]
    position: Int[Tensor, " examples"]
    labels: Int[Tensor, " examples"]
    names: Sequence[str]
    pad: int
    truncated: int
    options: Int[Tensor, " examples"] | None = None  # number of options of each, if it varies

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Examples:
        """The same examples on a device, except for `lengths`, by which the host plans batches."""
        moved = {
            key: value.to(device)
            for key, value in vars(self).items()
            if isinstance(value, Tensor) and key != "lengths"
        }
        return replace(self, **moved)

    def expect(self, indices: Int[Tensor, " batch"]) -> None:
        """Nothing: token ids are in memory, so there is nothing to read ahead."""

    def batch(self, indices: Int[Tensor, " batch"]) -> tuple[dict[str, Tensor], Int[Tensor, " batch"]]:
        """Inputs of these examples, padded to the longest, and their labels."""
        device = self.tokens.device
        length = self.lengths[indices]
        column = torch.arange(int(length.max()), device=device)
        there, length = indices.to(device), length.to(device)
        mask = column < length[:, None]
        flat = torch.where(mask, self.starts[there][:, None] + column, 0)
        inputs = {
            "input_ids": torch.where(mask, self.tokens[flat], self.pad),
            "token_type_ids": torch.where(mask, self.segments[flat], 0),
            "attention_mask": mask.long(),
            "position": self.position[there],
        }
        if self.options is not None:
            inputs["options"] = self.options[there]
        return inputs, self.labels[there]


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
) -> Examples:
    """Rows (id, text, label, perhaps pair or choices) in an input form, at most `max_length` tokens each.

    template: what `prompted` and `formatted` input put a text into; where it shows options, a row without
    `choices` has the classes' words, lettered in `language`. positions: of the backbone, of which a soft
    prompt takes `prompt_length`. Raises BadInput for a template or options that do not fit the rows, and
    where `max_length` is more than the positions or leaves no room for texts.
    """
    check_length(max_length, positions, prompt_length)
    form, paired = named(LAYOUTS, input, "input"), "pair" in table
    lettered = input == "formatted" and has_choices(template)
    if input == "formatted" and paired and "choices" in table:
        template = with_pair(template)
    options = options_of(table, words or {}) if lettered else [[]] * len(table)
    layouts = {
        count: form(tokenizer, template, paired=paired, options=count, language=language)
        for count in sorted({len(given) for given in options} or {0})
    }
    budgets = {count: room(layout, max_length, template) for count, layout in layouts.items()}
    slots = [slot for slot in ("text", "pair") if any(slot in each.slots for each in layouts.values())]
    rows = [
        build(layouts[len(given)], row, budgets[len(given)])
        for given, row in zip(options, contents(table[slots], options, tokenizer), strict=True)
    ]
    examples = pack(rows, table["label"].tolist(), table["id"].tolist(), tokenizer.pad_token_id)
    if not lettered:
        return examples
    return replace(examples, options=torch.tensor([len(given) for given in options], dtype=torch.long))


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


def contents(
    texts: pd.DataFrame, options: list[list[str]], tokenizer: PreTrainedTokenizerBase
) -> Iterator[dict[str, list[int]]]:
    """Token ids of each row's texts and options, by slot."""
    columns = {slot: tokenize(tokenizer, texts[slot].tolist()) for slot in texts}
    different = sorted({*chain.from_iterable(options)})  # options that all rows share are tokenised once
    ids = dict(zip(different, tokenize(tokenizer, different), strict=True))
    for given, *row in zip(options, *columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True)) | {option_slot(n): ids[o] for n, o in enumerate(given)}


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


def build(layout: Layout, row: dict[str, list[int]], budget: int) -> tuple[list[int], list[int], int, bool]:
    """Ids, segments and read position of one example, and whether a text was cut."""
    long = [len(row[slot]) for slot in layout.slots]
    kept = dict(zip(layout.slots, shorten(long, budget), strict=True))
    ids, segments, position = [], [], 0
    for number, (piece, segment) in enumerate(zip(layout.pieces, layout.segments, strict=True)):
        if number == layout.read:
            position = len(ids)
        part = row[piece][: kept[piece]] if isinstance(piece, str) else piece
        ids += part
        segments += [segment] * len(part)
    return ids, segments, position, sum(kept.values()) < sum(long)


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


def pack(rows: list, labels: Sequence[int] | Tensor, names: Sequence[str], pad: int) -> Examples:
    """Built rows as examples, end to end."""
    lengths = torch.tensor([len(ids) for ids, *_ in rows], dtype=torch.long)
    return Examples(
        tokens=torch.tensor([token for ids, *_ in rows for token in ids], dtype=torch.long),
        segments=torch.tensor(
            [segment for _, segments, *_ in rows for segment in segments], dtype=torch.long
        ),
        starts=lengths.cumsum(0) - lengths,
        lengths=lengths,
        position=torch.tensor([position for *_, position, _ in rows], dtype=torch.long),
        labels=torch.as_tensor(list(labels), dtype=torch.long),
        names=list(names),
        pad=pad,
        truncated=sum(cut for *_, cut in rows),
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
