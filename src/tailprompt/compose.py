"""A backbone, a tuner and a head by name become one model: the one place where concepts meet."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tailprompt.backbones import Backbone
from tailprompt.errors import named
from tailprompt.heads import Linear, Verbalizer, scale_by_norm
from tailprompt.tuners import TUNERS


class Model(nn.Module):
    """Body and head; in evaluation mode logits are divided by weight norms to the power `eta`."""

    def __init__(self, body: nn.Module, head: nn.Module, *, eta: float = 0.0, eta_bias: bool = False):
        super().__init__()
        self.body, self.head, self.eta, self.eta_bias = body, head, eta, eta_bias

    def features(self, batch: dict[str, Tensor]) -> Float[Tensor, "batch width"]:
        """What the last layer sees: the head's features of the vector at each example's position."""
        inputs = {key: value for key, value in batch.items() if key != "position"}
        hidden = self.body(**inputs).last_hidden_state
        return self.head.features(hidden[torch.arange(len(hidden), device=hidden.device), batch["position"]])

    def forward(self, batch: dict[str, Int[Tensor, "batch *tokens"]]) -> Float[Tensor, "batch classes"]:
        logits = self.head.logits(self.features(batch))
        if self.training or not self.eta:
            return logits
        return scale_by_norm(
            logits, self.head.class_vectors(), self.head.bias(), self.eta, divide_bias=self.eta_bias
        )


def compose(backbone: Backbone, settings: dict, *, words: list[list[int]]) -> Model:
    """The model of a run's settings. words: token ids of each class's word."""
    named(TUNERS, settings["tuner"], "tuner")(backbone.body)
    head = named(HEADS, settings["head"], "head")(backbone, settings, words)
    head.requires_grad_(True)
    return Model(backbone.body, head, eta=settings["eta"], eta_bias=settings["eta_bias"])


def linear(backbone: Backbone, settings: dict, words: list[list[int]]) -> Linear:
    wanted = ("activation", "norm", "norm_eps", "dropout", "predictor", "logit_scale")
    return Linear(backbone, len(words), **{key: settings[key] for key in wanted})


def verbalizer(backbone: Backbone, settings: dict, words: list[list[int]]) -> Verbalizer:
    return Verbalizer(backbone, words, tied=settings["tied"])


HEADS = {"linear": linear, "verbalizer": verbalizer}
