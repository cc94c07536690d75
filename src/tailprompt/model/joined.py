"""A head for each of joined sets, on states that all share (P-Tuning v2, section 3.3 and appendix A)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

Tokens = Float[Tensor, "batch tokens width"]


class JoinedHeads(nn.Module):
    """Heads, of which a batch has the one of its set, so that the others get no gradient from it.

    heads: by the number of the set. columns: of each head its outputs among all. outputs: how many there are
    in all. missing: the logit of an output that a set does not have.
    """

    def __init__(
        self, heads: Sequence[nn.Module], columns: Sequence[Sequence[int]], *, outputs: int, missing: float
    ):
        super().__init__()
        self.heads, self.outputs, self.missing = nn.ModuleList(heads), outputs, missing
        self.scale = heads[0].scale
        for number, places in enumerate(columns):
            self.register_buffer(f"columns_{number}", torch.tensor(places), persistent=False)

    def logits(self, states: Tokens, number: int) -> Float[Tensor, "batch tokens outputs"]:
        """The logits of all outputs by the head of one set."""
        head, columns = self.heads[number], self.columns(number)
        own = head.logits(head.features(states))
        return own.new_full((*own.shape[:-1], self.outputs), self.missing).index_copy(-1, columns, own)

    def columns(self, number: int) -> Int[Tensor, " outputs"]:
        """The outputs of one set among all."""
        return self.get_buffer(f"columns_{number}")

    def class_vectors(self) -> Float[Tensor, "outputs width"]:
        """The vectors of the outputs of each set, set after set."""
        return torch.cat([head.class_vectors() for head in self.heads])
