"""A backbone, a tuner and a head by name become one model, and rows its input: where concepts meet.

Training and prediction both build here what a run's settings say.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor, nn

from tailprompt.backbones import Backbone
from tailprompt.encode import Examples, encode, encode_words
from tailprompt.errors import BadInput, named
from tailprompt.files import reading
from tailprompt.heads import Linear, Verbalizer, scale_by_norm
from tailprompt.template import template_of
from tailprompt.tuners import TUNERS

# what composing a run and encoding its rows always reads
SETTINGS = ("input", "template", "max_length", "tuner", "head", "eta", "eta_bias", "start", "precision")


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

    def forward(self, batch: dict[str, Tensor]) -> Float[Tensor, "batch classes"]:
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


def word_ids(
    words: dict[str, str], backbone: Backbone, settings: dict, *, source: str = "verbalizer"
) -> list[list[int]]:
    """Token ids of each class's word where the head reads words, else of nothing."""
    if settings["head"] != "verbalizer":
        return [[] for _ in words]
    return encode_words(words, backbone.tokenizer, source=source)


def encode_rows(table: pd.DataFrame, backbone: Backbone, settings: dict) -> Examples:
    """The rows of a table (id, text, label, perhaps pair) as token ids."""
    return encode(
        table["text"].tolist(),
        table["pair"].tolist() if "pair" in table else None,
        table["label"].tolist(),
        table["id"].tolist(),
        backbone.tokenizer,
        input=settings["input"],
        template=template_of(settings),
        max_length=settings["max_length"],
        positions=backbone.positions,
    )


def load_trained(model: Model, run: Path, *, started: bool = False) -> None:
    """Load a run's weights; raises BadInput unless they hold all that this model trains.

    started: the run began from another run's weights, so that nothing of it is as in the checkpoint.
    """
    path = run / "weights.safetensors"
    with reading(path):
        weights = load_file(path)
    weights.pop("class_vectors", None)
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    needed = {name for name, value in model.named_parameters() if value.requires_grad or started}
    absent = needed - set(weights)
    if any(name.startswith("body.") for name in absent):
        raise BadInput(
            f"{path} holds the head without its body; set keep: true in the row of the run's method "
            "and run it again"
        )
    if absent or any(shapes.get(name) != value.shape for name, value in weights.items()):
        raise BadInput(f"{path} is of another model: another backbone, head or number of classes")
    model.load_state_dict(weights, strict=False)


@torch.no_grad()
def rescaled(model: Model, logits: Float[Tensor, "examples classes"], tau: float) -> Tensor:
    """Logits on the CPU after tau-norm."""
    if not tau:
        return logits
    return scale_by_norm(logits, model.head.class_vectors().cpu(), model.head.bias().cpu(), tau)


HEADS = {"linear": linear, "verbalizer": verbalizer}
