"""Encoded texts, of which batches are cut out on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

UNLABELLED = -100  # the label of a token that has none


@dataclass(frozen=True)
class Examples:
    """Token ids of all examples end to end, so that a few operations on the device cut out a batch.

    starts: where each sequence begins, and where the last one ends. labels: of examples; or of their tokens
    `[examples, longest]`, negative where there is none; or first and last token of answers. most: the tokens
    that an example may have, beyond which no batch is padded, as a backbone may have no position more.
    """

    held = True  # whether batches are made of what the device holds
    tokens: Int[Tensor, " total"]
    segments: Int[Tensor, " total"]
    starts: Int[Tensor, " ends"]
    lengths: Int[Tensor, " examples"]
    position: Int[Tensor, " examples"]
    labels: Int[Tensor, "examples *labels"]
    names: Sequence[str]
    pad: int
    most: int
    truncated: int
    options: Int[Tensor, " examples"] | None = None  # number of options of each, if it varies
    answer: Int[Tensor, " examples"] | None = None  # id of the right answer, if a decoder is to see it
    sequences: int = 1  # token sequences of each example, one an option
    unit: str = "example"  # of what is labelled: example, token or span (`tasks.task.Task`)
    aligned: object = None  # what a task needs to find its way back from tokens
    sets: Int[Tensor, " examples"] | None = None  # the number of the set of each, where sets are joined

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Examples:
        """The same examples on a device, except for `lengths` and `sets`, by which the host plans batches."""
        moved = {
            key: value.to(device)
            for key, value in vars(self).items()
            if isinstance(value, Tensor) and key not in ("lengths", "sets")
        }
        return replace(self, **moved)

    def expect(self, indices: Int[Tensor, " batch"]) -> None:
        """Nothing: token ids are in memory, so there is nothing to read ahead."""

    def width(self, indices: Int[Tensor, " batch"]) -> int:
        """The length of the longest of these examples."""
        return int(self.lengths[indices].max())

    def staged(self, indices: Int[Tensor, " batch"], there: Int[Tensor, " batch"]) -> tuple[Tensor, ...]:
        """What `made` takes of these examples. there: the same indices on the device."""
        return (there,)

    def made(
        self, there: Int[Tensor, " batch"], *, width: int
    ) -> tuple[dict[str, Tensor], Int[Tensor, " batch"]]:
        """Inputs padded to `width` (never beyond `most`) and labels, by operations on the device alone."""
        width, each = min(width, self.most), self.each(there)
        place = self.starts[each][:, None] + torch.arange(width, device=there.device)
        mask = place < self.starts[each + 1][:, None]
        flat = torch.where(mask, place, 0)
        inputs = {
            "input_ids": torch.where(mask, self.tokens[flat].long(), self.pad),
            "token_type_ids": torch.where(mask, self.segments[flat].long(), 0),
            "attention_mask": mask.long(),
            "position": self.position[each],
        }
        if self.options is not None:
            inputs["options"] = self.options[there]
        if self.answer is not None:
            inputs["answer"] = self.answer[there]
        return inputs, self.labelled(there, width)

    def each(self, there: Int[Tensor, " batch"]) -> Int[Tensor, " sequences"]:
        """The numbers of the sequences of these examples."""
        if self.sequences == 1:
            return there
        return (there[:, None] * self.sequences + torch.arange(self.sequences, device=there.device)).flatten()

    def labelled(self, there: Int[Tensor, " batch"], width: int) -> Int[Tensor, "batch *labels"]:
        """The labels of these examples; those of tokens are padded to `width`."""
        labels = self.labels[there]
        if self.unit != "token":
            return labels
        return F.pad(labels[:, :width], (0, max(0, width - labels.shape[1])), value=UNLABELLED)
