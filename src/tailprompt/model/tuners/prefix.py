"""P-Tuning v2's prefix: keys and values before those of the input, in layers of a frozen body (section 3)."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.model.adapter import keys_and_values
from tailprompt.model.attention import Pair, take_prefixes
from tailprompt.model.backbones import Backbone, VisionBackbone
from tailprompt.model.bodies import ImageBody, TextBody
from tailprompt.model.limits import layers_of
from tailprompt.model.tuners.deep import image_body

Stacked = Float[Tensor, "layers length inner"]  # inner: of all heads together
DEVIATION = 0.02  # what the released code draws is drawn so, as BERT was


def prefix(backbone: Backbone | VisionBackbone, told, **_) -> TextBody | ImageBody:
    """The frozen body with a prefix in its layers; of the body, only that learns.

    told: `components.tuners.Prefix`, which `limits.check_prefix` has checked.
    """
    depth, heads, size = backbone.attention
    chosen = layers_of(told.layers, depth)
    shape = len(chosen), told.length, heads * size
    made = partial(Reparameterised, shape, backbone.width, told.mlp_hidden)
    network = made() if told.mlp else None
    added = Prefix(
        shape, chosen=chosen, depth=depth, heads=heads, dropout=told.prefix_dropout, network=network
    )
    if backbone.reads == "image":
        return image_body(backbone, told.beside, drops=told.body_dropout, prefix=added)
    if not getattr(backbone.body, "takes_prefixes", False):
        take_prefixes(backbone.body)
    first = told.length + backbone.first_position if told.positions == "shifted" else None
    frozen = backbone.body.requires_grad_(False)
    return TextBody(frozen, prefix=added, first=first, rests=not told.body_dropout)


class Reparameterised(nn.Module):
    """Keys and values by two layers over an embedding of each place (Li and Liang 2021, section 4.3).

    The layout is the released code's: of each place the key and the value of one layer after another.
    """

    def __init__(self, shape: tuple[int, int, int], width: int, hidden: int):
        super().__init__()
        self.count, length, inner = shape
        self.embedding = nn.Parameter(torch.empty(length, width))
        outputs = 2 * self.count * inner
        self.layers = nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, outputs))
        for name, value in self.named_parameters():
            nn.init.zeros_(value) if name.endswith("bias") else nn.init.normal_(value, std=DEVIATION)

    def forward(self) -> tuple[Stacked, Stacked]:
        return keys_and_values(self.layers(self.embedding), self.count)


class Prefix(nn.Module):
    """Keys and values of `length` places in the chosen layers of a body of `depth` layers.

    keys, values: Float[layers length inner]; None while a network makes them. dropout: of both, which
    differs between examples (code of P-Tuning v2).
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        chosen: range,
        depth: int,
        heads: int,
        dropout: float = 0.0,
        network: Reparameterised | None = None,
    ):
        super().__init__()
        self.keys = None if network else nn.Parameter(DEVIATION * torch.randn(shape))
        self.values = None if network else nn.Parameter(DEVIATION * torch.randn(shape))
        self.network, self.chosen, self.depth = network, chosen, depth
        self.heads, self.dropout = heads, dropout

    def forward(self, batch: int) -> list[Pair | None]:
        """The keys and values of each layer of the body, None for a layer that was not chosen."""
        pairs = zip(*(self.in_heads(each, batch) for each in self.stacked().values()), strict=True)
        return [next(pairs) if layer in self.chosen else None for layer in range(self.depth)]

    def in_heads(self, stacked: Stacked, batch: int) -> Float[Tensor, "layers examples heads length size"]:
        """Keys or values after dropout; without it, one set for all examples."""
        split = stacked.unflatten(-1, (self.heads, -1)).transpose(1, 2)[:, None]
        if not (self.dropout and self.training):
            return split
        return F.dropout(split.expand(-1, batch, -1, -1, -1), self.dropout)

    def stacked(self) -> dict[str, Stacked]:
        """Keys and values by the names under which they are saved, however they are made."""
        made = (self.keys, self.values) if self.network is None else self.network()
        return dict(zip(("keys", "values"), made, strict=True))

    @torch.no_grad()
    def fold(self) -> None:
        """Replace the network by what it makes, so that keys and values themselves are the parameters."""
        if self.network is not None:
            self.keys, self.values = (nn.Parameter(each.contiguous()) for each in self.stacked().values())
            self.network = None
