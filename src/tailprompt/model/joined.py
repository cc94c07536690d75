"""A head for each of joined sets, on states that all share (P-Tuning v2, section 3.3 and appendix A)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn


class JoinedHeads(nn.Module):
    """Heads, of which a batch has the one of its set, so that the others get no gradient from it.

    heads: by the number of the set. columns: of each head its outputs among all, in order. outputs: how many
    there are in all. missing: the logit of an output that a set does not have.
    """

    def __init__(
        self, heads: Sequence[nn.Module], columns: Sequence[Sequence[int]], *, outputs: int, missing: float
    ):
        super().__init__()
        self.heads, self.columns = nn.ModuleList(heads), columns
        self.outputs, self.missing, self.scale = outputs, missing, heads[0].scale

    def logits(
        self, states: Float[Tensor, "batch tokens width"], number: int
    ) -> Float[Tensor, "batch tokens outputs"]:
        """The logits of all outputs by the head of one set."""
        head = self.heads[number]
        own = head.logits(head.features(states))
        return spread(own, self.columns[number], outputs=self.outputs, missing=self.missing)

    def class_vectors(self) -> Float[Tensor, "outputs width"]:
        """The vectors of the outputs of each set, set after set."""
        return torch.cat([head.class_vectors() for head in self.heads])


def spread(
    own: Float[Tensor, "*batch own"], columns: Sequence[int], *, outputs: int, missing: float
) -> Float[Tensor, "*batch outputs"]:
    """Logits at their columns among all outputs, and `missing` elsewhere.

    They are copied run by run: to index would wait for the GPU, where algorithms are deterministic.
    """
    begins = [at for at, column in enumerate(columns) if at == 0 or column != columns[at - 1] + 1]
    parts, end = [], 0
    runs = own.split([b - a for a, b in pairwise([*begins, len(columns)])], dim=-1)
    for at, run in zip(begins, runs, strict=True):
        parts += [own.new_full((*own.shape[:-1], columns[at] - end), missing), run]
        end = columns[at] + run.shape[-1]
    return torch.cat([*parts, own.new_full((*own.shape[:-1], outputs - end), missing)], dim=-1)
