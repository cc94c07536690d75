"""A backbone, a tuner and a head by name become one model: where concepts meet.

Training and prediction both build here what a run's settings say; `examples` makes its input, `weights`
writes and reads what it learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tailprompt.errors import named
from tailprompt.inputs.images import VIEWS
from tailprompt.model import limits as tuning
from tailprompt.model.backbones import Backbone, VisionBackbone, sentinel
from tailprompt.model.heads import Linear, Predictor, Verbalizer, scale_by_norm
from tailprompt.model.tuners.soft import SoftPrompted, soft_prompt
from tailprompt.model.tuners.vision import prompted

# what composing a run and encoding its rows always reads, of texts and of images
SETTINGS = ("input", "template", "max_length", "tuner", "head", "eta", "eta_bias", "start", "precision")
FORMATTED = ("pattern", "form", "language", "decoding", "sentinel_loss")  # and where input is formatted
SOFT = ("soft_length", "soft_init", "soft_scale")  # and where tuner is soft_prompt
HEAD_OF_IMAGES = ("dropout", "predictor", "logit_scale")
SETTINGS_OF_IMAGES = (
    *tuning.SETTINGS,
    *HEAD_OF_IMAGES,
    *VIEWS,
    *("head", "eta", "eta_bias", "start", "precision"),
)
NEVER = -1e4  # the logit of an option that is not there: no probability, and a number in float16


def read_by(settings: dict) -> tuple[str, ...]:
    """The settings that composing a run and encoding its rows read, by its input and tuner."""
    if settings.get("input") == "pixels":
        return SETTINGS_OF_IMAGES
    formatted = FORMATTED if settings.get("input") == "formatted" else ()
    return (*SETTINGS, *formatted, *(SOFT if settings.get("tuner") == "soft_prompt" else ()))


class Model(nn.Module):
    """Body and head; in evaluation mode logits are divided by weight norms to the power `eta`.

    A batch with `options` gives the first so many classes of each example their logits, the rest `NEVER`.
    sentinel: a T5's; in training its loss, where the decoder should say it before the answer, comes too.
    """

    def __init__(
        self,
        body: nn.Module,
        head: nn.Module,
        *,
        eta: float = 0.0,
        eta_bias: bool = False,
        sentinel: int | None = None,
    ):
        super().__init__()
        self.body, self.head, self.eta, self.eta_bias = body, head, eta, eta_bias
        self.sentinel = sentinel

    def own(self, *, started: bool) -> set[str]:
        """Names of what a run's weights hold: what learns, and all that is not as in the checkpoint.

        That is all of a run that began in another (`started`), but not of a body that a soft prompt freezes.
        """
        every = started and not isinstance(self.body, SoftPrompted)
        return {name for name, value in self.named_parameters() if value.requires_grad or every}

    def new(self, *, tuned: bool) -> set[str]:
        """Names of what a run to start from need not hold: the body, unless it was `tuned` there.

        A soft prompt it must hold.
        """
        if tuned or isinstance(self.body, SoftPrompted):
            return set()
        return {f"body.{name}" for name, _ in self.body.named_parameters()}

    def features(self, batch: dict[str, Tensor]) -> Float[Tensor, "batch width"]:
        """What the last layer sees: the head's features of the vector at each example's position."""
        return self.at(self.hidden(batch), batch["position"])

    def hidden(self, batch: dict[str, Tensor]) -> Float[Tensor, "batch tokens width"]:
        """The body's last hidden states."""
        inputs = {key: value for key, value in batch.items() if key not in ("position", "options")}
        return self.body(**inputs).last_hidden_state

    def at(
        self, hidden: Float[Tensor, "batch tokens width"], position: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch width"]:
        """The head's features of one vector of each example."""
        return self.head.features(hidden[torch.arange(len(hidden), device=hidden.device), position])

    def forward(self, batch: dict[str, Tensor]) -> Tensor | tuple[Tensor, Tensor]:
        """Logits `[batch, classes]`; in training, where there is a `sentinel`, with its loss `[batch]`."""
        hidden = self.hidden(batch)
        logits = class_logits(self, self.at(hidden, batch["position"]))
        if "options" in batch and not self.head.open:
            there = torch.arange(logits.shape[1], device=logits.device) < batch["options"][:, None]
            logits = logits.masked_fill(~there, NEVER)
        if not self.training or self.sentinel is None:
            return logits
        return logits, self.head.surprise(self.head.features(hidden[:, 1]), self.sentinel)


class ImageModel(nn.Module):
    """The same for images: pixels [batch, 3, size, size], or in evaluation [batch, views, 3, size, size].

    body: a PromptedViT. Logits, and features, are the mean over an image's views.
    """

    def __init__(self, body: nn.Module, head: nn.Module, *, eta: float = 0.0, eta_bias: bool = False):
        super().__init__()
        self.body, self.head, self.eta, self.eta_bias = body, head, eta, eta_bias

    @property
    def own(self) -> set[str]:
        """Names of what is not the pretrained ViT's: what a run's weights hold."""
        named = self.named_parameters()
        return {name for name, value in named if value.requires_grad or not name.startswith("body.vit.")}

    def new(self, *, tuned: bool) -> set[str]:
        """Names of what a run to start from need not hold: all but the shared prompts and the head.

        Of the ViT it must hold what learns here, where the ViT was `tuned` there.
        """
        held = ("head.", "body.prompts", *(["body.vit."] if tuned else []))
        return {name for name in self.own if not name.startswith(held)}

    def features(self, batch: dict[str, Tensor]) -> Float[Tensor, "batch width"]:
        """What the predictor sees."""
        return over_views(self.seen, batch["pixels"])

    def forward(self, batch: dict[str, Tensor]) -> Tensor | tuple[Tensor, Tensor]:
        """Logits; in training, and where the tuner has keys, with what LPT Eq. 5 adds for each example."""
        if not self.training:
            return over_views(self.judged, batch["pixels"])
        tuned = self.body(batch["pixels"])
        logits = class_logits(self, self.head.features(tuned.features))
        return logits if tuned.match is None else (logits, tuned.match)

    def seen(self, pixels: Float[Tensor, "batch 3 size size"]) -> Float[Tensor, "batch width"]:
        """Features of single views."""
        return self.head.features(self.body(pixels).features)

    def judged(self, pixels: Float[Tensor, "batch 3 size size"]) -> Float[Tensor, "batch classes"]:
        """Logits of single views."""
        return class_logits(self, self.seen(pixels))

    def chosen(self, batch: dict[str, Tensor]) -> Int[Tensor, "batch chosen"] | None:
        """The group prompts of each image, the best first; of its last view, which is the middle."""
        pixels = batch["pixels"]
        return self.body(pixels[:, -1] if pixels.ndim == 5 else pixels).chosen


def over_views(apply: Callable[[Tensor], Tensor], pixels: Tensor) -> Float[Tensor, "batch outputs"]:
    """The mean of `apply` over the views of each image, where it has several."""
    if pixels.ndim == 4:
        return apply(pixels)
    return apply(pixels.flatten(0, 1)).unflatten(0, pixels.shape[:2]).mean(1)


def class_logits(
    model: Model | ImageModel, features: Float[Tensor, "batch width"]
) -> Float[Tensor, "batch classes"]:
    """Logits; in evaluation divided by weight norms to the power `eta`."""
    head, logits = model.head, model.head.logits(features)
    if model.training or not model.eta:
        return logits
    return scale_by_norm(logits, head.class_vectors(), head.bias(), model.eta, divide_bias=model.eta_bias)


def compose(
    backbone: Backbone | VisionBackbone,
    settings: dict,
    *,
    words: list[list[int]],
    texts: Iterable[Sequence[int]] | None = None,
) -> Model | ImageModel:
    """The model of a run's settings. words: token ids of each class's word, of images empty.

    texts: token ids of those of training, of which a soft prompt may begin with words; None where a prompt
    will be loaded.
    """
    norms = {"eta": settings["eta"], "eta_bias": settings["eta_bias"]}
    if isinstance(backbone, VisionBackbone):
        tuning.check(settings, depth=backbone.depth, size=backbone.size)
        body = prompted(backbone.body, **{key: settings[key] for key in tuning.SETTINGS})
        head = named(HEADS_OF_IMAGES, settings["head"], "head of images")(backbone, settings, words)
        return ImageModel(body, head, **norms)
    body = named(TUNERS, settings["tuner"], "tuner of texts")(backbone, settings, words, texts)
    head = named(HEADS, settings["head"], "head of texts")(backbone, settings, words)
    head.requires_grad_(settings["tuner"] != "soft_prompt")  # which alone learns
    spoken = settings.get("sentinel_loss") and backbone.tokenizer.mask_token_id is None
    return Model(body, head, sentinel=sentinel(backbone.tokenizer) if spoken else None, **norms)


def full(
    backbone: Backbone, settings: dict, words: list[list[int]], texts: Iterable[Sequence[int]] | None
) -> nn.Module:
    """The body, of which every parameter learns."""
    return backbone.body.requires_grad_(True)


def frozen(
    backbone: Backbone, settings: dict, words: list[list[int]], texts: Iterable[Sequence[int]] | None
) -> nn.Module:
    """The body, of which none does: only the head learns (a linear probe)."""
    return backbone.body.requires_grad_(False)


def soft_prompted(
    backbone: Backbone, settings: dict, words: list[list[int]], texts: Iterable[Sequence[int]] | None
) -> SoftPrompted:
    """The frozen body behind a first soft prompt, which alone learns."""
    prompt = soft_prompt(
        "normal" if texts is None else settings["soft_init"],
        settings["soft_length"],
        backbone.body.get_input_embeddings().weight,
        backbone.tokenizer,
        words=words,
        texts=texts or (),
        scale=settings["soft_scale"],
    )
    return SoftPrompted(backbone.body, prompt, scale=settings["soft_scale"])


def linear(backbone: Backbone, settings: dict, words: list[list[int]]) -> Linear:
    wanted = ("activation", "norm", "norm_eps", "dropout", "predictor", "logit_scale")
    return Linear(backbone, len(words), **{key: settings[key] for key in wanted})


def verbalizer(backbone: Backbone, settings: dict, words: list[list[int]]) -> Verbalizer:
    decoding = settings.get("decoding", "restricted")
    return Verbalizer(backbone, words, tied=settings["tied"], decoding=decoding)


def predictor(backbone: VisionBackbone, settings: dict, words: list[list[int]]) -> Predictor:
    return Predictor(
        backbone.width,
        len(words),
        initializer_range=backbone.initializer_range,
        **{key: settings[key] for key in HEAD_OF_IMAGES},
    )


@torch.no_grad()
def rescaled(model: Model | ImageModel, logits: Float[Tensor, "examples classes"], tau: float) -> Tensor:
    """Logits on the CPU after tau-norm."""
    if not tau:
        return logits
    return scale_by_norm(logits, model.head.class_vectors().cpu(), model.head.bias().cpu(), tau)


TUNERS = {"full": full, "frozen": frozen, "soft_prompt": soft_prompted}
HEADS = {"linear": linear, "verbalizer": verbalizer}
HEADS_OF_IMAGES = {"predictor": predictor}
