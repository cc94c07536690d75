"""LoRA: low-rank changes of the query and value projections of a frozen body (Hu et al. 2022, section 4).

The layers are peft's: A is drawn as a linear layer's weights, B is zero, and only they learn. A layer that
computes queries, keys and values at once has a change for its queries and one for its values.
"""

from __future__ import annotations

import re
from functools import partial
from math import sqrt
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.model.backbones import Backbone, VisionBackbone
from tailprompt.model.bodies import ImageBody, TextBody
from tailprompt.model.limits import layers_of
from tailprompt.model.tuners.deep import image_body

PROJECTIONS = ("query", "value", "q", "v", "query_proj", "value_proj")  # of BERT and RoBERTa, T5, DeBERTa-v2
PARTS = ("query", "value")


class Joint(NamedTuple):
    """A layer of queries, keys and values at once. groups: how often the three follow each other."""

    layer: nn.Linear
    groups: int


class Change(nn.Module):
    """What is added to the output of a linear layer: alpha / rank * B A x.

    down: A, up: B. dropout: of x.
    """

    def __init__(self, inputs: int, outputs: int, *, rank: int, alpha: float, dropout: float = 0.0):
        super().__init__()
        self.down = nn.Parameter(torch.empty(rank, inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))
        self.scale, self.dropout = alpha / rank, nn.Dropout(dropout)
        nn.init.kaiming_uniform_(self.down, a=sqrt(5))

    def forward(self, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch outputs"]:
        low = F.linear(self.dropout(x), self.down.to(x))
        return self.scale * F.linear(low, self.up.to(x))  # Hu et al. 2022, Eq. 3


def lora(backbone: Backbone | VisionBackbone, told, **_) -> TextBody | ImageBody:
    """The frozen body with changes of its projections, which alone of it learn, and `beside` in a ViT.

    told: `components.tuners.Lora`. A T5's are changed in its encoder, its decoder, and between the two.
    """
    frozen = backbone.body.requires_grad_(False)
    chosen = layers_of(told.layers, backbone.attention.depth)
    make = partial(Change, rank=told.rank, alpha=told.alpha, dropout=told.lora_dropout)
    changes = nn.ModuleDict()
    for name, layer in projections(frozen, chosen):
        change = changes[name.replace(".", "_")] = make(layer.in_features, layer.out_features)
        layer.register_forward_hook(partial(changed, change))
    for name, (layer, groups) in joint_projections(frozen, chosen):
        parts = [make(layer.in_features, layer.out_features // 3) for _ in PARTS]
        changes.update(
            {f"{name}_{part}".replace(".", "_"): each for part, each in zip(PARTS, parts, strict=True)}
        )
        layer.register_forward_hook(partial(changed_jointly, parts, groups))
    if backbone.reads == "image":
        return image_body(backbone, told.beside, drops=told.body_dropout, lora=changes)
    return TextBody(frozen, lora=changes, rests=not told.body_dropout)


def projections(body: nn.Module, chosen: range) -> list[tuple[str, nn.Linear]]:
    """The query and value projections of the chosen layers, by name."""
    return [
        (f"{place}.{name}", layer)
        for place, module in body.named_modules()
        for name, layer in module.named_children()
        if name in PROJECTIONS and isinstance(layer, nn.Linear) and layer_of(place) in chosen
    ]


def joint_projections(body: nn.Module, chosen: range) -> list[tuple[str, Joint]]:
    """The projections of the chosen layers that are queries, keys and values at once, by name.

    A timm ViT has the three one after another, a DeBERTa those of one head after another.
    """
    return [
        (f"{place}.{name}", Joint(layer, 1 if name == "qkv" else module.num_attention_heads))
        for place, module in body.named_modules()
        for name, layer in module.named_children()
        if name in ("qkv", "in_proj") and isinstance(layer, nn.Linear) and layer_of(place) in chosen
    ]


def layer_of(place: str) -> int:
    """The layer that a module belongs to: the first number in its name."""
    return int(re.search(r"\d+", place)[0])


def changed(change: Change, layer: nn.Linear, given: tuple[Tensor], output: Tensor) -> Tensor:
    """The output of a layer with its change."""
    return output + change(given[0])


def changed_jointly(
    parts: list[Change], groups: int, layer: nn.Linear, given: tuple[Tensor], output: Tensor
) -> Tensor:
    """The output of a joint layer with the changes of its queries and of its values; keys stay."""
    return output + together(*(change(given[0]) for change in parts), groups)


def together(
    query: Float[Tensor, "*batch outputs"], value: Float[Tensor, "*batch outputs"], groups: int
) -> Float[Tensor, "*batch thrice"]:
    """Queries, zeros for keys, and values, in the order of a joint layer's output."""
    query, value = (each.unflatten(-1, (groups, -1)) for each in (query, value))
    return torch.stack([query, torch.zeros_like(query), value], dim=-2).flatten(-3)
