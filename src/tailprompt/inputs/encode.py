"""Rows of a data set become token ids.

`plain`: [CLS] text [SEP] (pair [SEP]), read at [CLS]. `prompted`: the data set's template with one mask,
read at the mask. Only texts are ever cut, never the template, so the mask survives; special tokens
written in a text are text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from tailprompt.errors import BadInput, named
from tailprompt.inputs.template import pieces as pieces_of


@dataclass(frozen=True)
class Examples:
    """Token ids of all examples end to end, so that a batch is cut out on the device in a few operations."""

    tokens: Int[Tensor, " total"]
    segments: Int[Tensor, " total"]
    starts: Int[Tensor, " examples"]
    lengths: Int[Tensor, " examples"]
    position: Int[Tensor, " examples"]
    labels: Int[Tensor, " examples"]
    names: Sequence[str]
    pad: int
    truncated: int
    options: Int[Tensor, " examples"] | None = None  # how many of the classes each may be, where that varies

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Examples:
        """The same with everything but `lengths`, which plans batches, on a device."""
        moved = {
            key: value.to(device)
            for key, value in vars(self).items()
            if isinstance(value, Tensor) and key != "lengths"
        }
        return replace(self, **moved)

    def expect(self, indices: Int[Tensor, " batch"]) -> None:
        """What `batch` will be asked for next; token ids are at hand."""

    def batch(self, indices: Int[Tensor, " batch"]) -> tuple[dict[str, Tensor], Int[Tensor, " batch"]]:
        """Inputs padded to the longest of these examples, and their labels."""
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
    texts: Sequence[str],
    pairs: Sequence[str] | None,
    labels: Sequence[int],
    names: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    input: str,
    template: str,
    max_length: int,
    positions: int | float,
) -> Examples:
    """Encode texts (and second texts) in the form `input`, at most `max_length` tokens each.

    Raises BadInput when `max_length` exceeds the backbone's positions or leaves no room for text.
    """
    if max_length > positions:
        raise BadInput(
            f"max_length {max_length} is more than the {positions} positions of the backbone; lower it"
        )
    layout = named(INPUTS, input, "input")(template, tokenizer, pairs is not None)
    budget = room(layout, max_length, template)
    given = {"text": texts, "pair": pairs}
    slots = {slot: tokenize(tokenizer, given[slot]) for slot in layout.slots}
    rows = [
        build(layout, dict(zip(slots, row, strict=True)), budget) for row in zip(*slots.values(), strict=True)
    ]
    return pack(rows, labels, names, tokenizer.pad_token_id)


@dataclass(frozen=True)
class Layout:
    """Pieces in order: lists of fixed ids, or the name of a slot. `read` is the piece read at."""

    pieces: list
    segments: list[int]
    read: int

    @property
    def slots(self) -> list[str]:
        return [piece for piece in self.pieces if isinstance(piece, str)]


def room(layout: Layout, max_length: int, template: str) -> int:
    """Tokens that a layout leaves for texts; raises BadInput where a text would get none."""
    left = max_length - sum(len(piece) for piece in layout.pieces if isinstance(piece, list))
    if left < len(layout.slots):
        raise BadInput(
            f"template '{template}' leaves {max(left, 0)} of max_length {max_length} tokens for text; "
            "raise max_length or shorten it"
        )
    return left


def plain(template: str, tokenizer: PreTrainedTokenizerBase, paired: bool) -> Layout:
    """[CLS] text [SEP], then pair [SEP] as a second segment where the tokenizer has segments."""
    start, end = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
    if not paired:
        return Layout([start, "text", end], [0, 0, 0], 0)
    between = end * (tokenizer.num_special_tokens_to_add(pair=True) - 2)
    second = int("token_type_ids" in tokenizer.model_input_names)
    return Layout([start, "text", between, "pair", end], [0, 0, 0, second, second], 0)


def prompted(template: str, tokenizer: PreTrainedTokenizerBase, paired: bool) -> Layout:
    """The template between [CLS] and [SEP], all in one segment; each literal run is tokenised by itself."""
    pieces, read = [[tokenizer.cls_token_id]], 0
    for literal, slot in pieces_of(template, paired=paired):
        if literal.strip():
            pieces.append(tokenize(tokenizer, [literal])[0])
        if slot == "mask":
            read = len(pieces)
            pieces.append([tokenizer.mask_token_id])
        elif slot is not None:
            pieces.append(slot)
    pieces.append([tokenizer.sep_token_id])
    return Layout(pieces, [0] * len(pieces), read)


def tokenize(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Ids of texts without special tokens; a literal `[MASK]` in a text is split like any other word."""
    if not len(texts):  # which it cannot take
        return []
    return tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False)[
        "input_ids"
    ]


def build(layout: Layout, row: dict[str, list[int]], budget: int) -> tuple[list[int], list[int], int, bool]:
    """Ids, segments and the position read of one example, and whether a text was cut."""
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
    """Lengths after dropping from the longest text, from the later ones of equals (code of GLEE)."""
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
    """Rows end to end."""
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
    words: dict[str, str], tokenizer: PreTrainedTokenizerBase, *, source: str = "verbalizer"
) -> list[list[int]]:
    """Token ids of each class's word, in order. source: where the words are from, for messages.

    Raises BadInput for a word of unknown tokens only, and for two classes that would always score alike.
    """
    ids = tokenize(tokenizer, list(words.values()))
    seen: dict[tuple, str] = {}
    for (name, word), tokens in zip(words.items(), ids, strict=True):
        if not set(tokens) - {tokenizer.unk_token_id}:
            raise BadInput(
                f"{source}: the word '{word}' of class '{name}' has no token that the backbone knows; "
                "choose another word"
            )
        key = tuple(sorted(tokens))
        if key in seen:
            raise BadInput(
                f"{source}: classes '{seen[key]}' and '{name}' have words of the same tokens; "
                "choose another word for one"
            )
        seen[key] = name
    return ids


INPUTS = {"plain": plain, "prompted": prompted}
