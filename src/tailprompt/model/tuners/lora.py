"""LoRA: low-rank changes of the query and value projections of a frozen body (Hu et al. 2022, section 4).

The layers are peft's: A is drawn as a linear layer's weights, B is zero, and only they learn.
"""

from __future__ import annotations

from functools import partial
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.model.backbones import Backbone
from tailprompt.model.bodies import TextBody
from tailprompt.model.limits import layers_of

PROJECTIONS = ("query", "value", "q", "v")  # of BERT and RoBERTa, and of T5


class Change(nn.Module):
    """What is added to the output of a linear layer: alpha / rank * B A x.

    down: A, up: B. dropout: of x.
    """

    def __init__(self, layer: nn.Linear, *, rank: int, alpha: float, dropout: float = 0.0):
        super().__init__()
        self.down = nn.Parameter(torch.empty(rank, layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        self.scale, self.dropout = alpha / rank, nn.Dropout(dropout)
        nn.init.kaiming_uniform_(self.down, a=sqrt(5))

    def forward(self, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch outputs"]:
        low = F.linear(self.dropout(x), self.down.to(x))
        return self.scale * F.linear(low, self.up.to(x))  # Hu et al. 2022, Eq. 3

    def folded(self) -> Float[Tensor, "outputs width"]:
        """What may be added to the layer's weights instead."""
        return self.scale * self.up @ self.down


def lora(backbone: Backbone, told, **_) -> TextBody:
    """The frozen body with changes of its projections, which alone of it learn.

    told: `components.tuners.Lora`. A T5's are changed in its encoder, its decoder, and between the two.
    """
    frozen = backbone.body.requires_grad_(False)
    chosen = layers_of(told.layers, backbone.attention.depth)
    make = partial(Change, rank=told.rank, alpha=told.alpha, dropout=told.lora_dropout)
    changes = nn.ModuleDict()
    for name, layer in projections(frozen, chosen):
        change = changes[name.replace(".", "_")] = make(layer)
        layer.register_forward_hook(partial(changed, change))
    return TextBody(frozen, lora=changes, rests=not told.body_dropout)


def projections(body: nn.Module, chosen: range) -> list[tuple[str, nn.Linear]]:
    """The query and value projections of the chosen layers, by name."""
    return [
        (f"{place}.{name}", layer)
        for place, module in body.named_modules()
        for name, layer in module.named_children()
        if name in PROJECTIONS and isinstance(layer, nn.Linear) and module.layer_idx in chosen
    ]


def changed(change: Change, layer: nn.Linear, given: tuple[Tensor], output: Tensor) -> Tensor:
    """The output of a layer with its change."""
    return output + change(given[0])
