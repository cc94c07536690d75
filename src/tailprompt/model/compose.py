"""Compose a model from a backbone, a tuner and a head, each by name.

Training and prediction both build the model of a run here. `weights` writes and reads what it learned.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.components.resolve import values
from tailprompt.components.run import Run
from tailprompt.errors import BadInput
from tailprompt.model import limits
from tailprompt.model.backbones import ENDING, Backbone, VisionBackbone, sentinel
from tailprompt.model.bodies import Read
from tailprompt.model.heads import HEADS, scale_by_norm
from tailprompt.model.joined import JoinedHeads
from tailprompt.model.terms import Terms
from tailprompt.model.tuners.deep import group_prompts, prompts, prompts_shallow
from tailprompt.model.tuners.lora import lora
from tailprompt.model.tuners.prefix import prefix
from tailprompt.model.tuners.soft import soft_prompt
from tailprompt.model.tuners.whole import frozen, full

NEVER = -1e4  # logit of an option that an example lacks: its probability is 0, and float16 can hold it


class Model(nn.Module):
    """A body and a head. In evaluation mode logits are divided by weight norms to the power `eta`.

    A batch with `options` says how many classes each example has; the logits of the others are `NEVER`. One
    with `vector` holds what a frozen body made of its examples (`inputs.features`). Pixels are [batch, 3,
    size, size], or in evaluation also [batch, views, 3, size, size]; logits and features are then the mean
    over views. A batch of joined sets has the number of its set, `set`. sentinels: the ids of a T5's
    sentinels before the answer, and perhaps after it, whose losses are added in training. unit: what the
    outputs are of (`tasks.task.Task`); if they are of tokens, the head reads the states `[batch, tokens,
    width]`. pooled: `components.inputs.Pooled` where the head reads the mean over tokens. The head computes
    in float32, whatever the body computes in.
    """

    exact = ("head",)

    def __init__(
        self,
        body: nn.Module,
        head: nn.Module,
        *,
        eta: float = 0.0,
        eta_bias: bool = False,
        sentinels: tuple[int, ...] = (),
        unit: str = "example",
        pooled=None,
    ):
        super().__init__()
        self.body, self.head, self.eta, self.eta_bias = body, head, eta, eta_bias
        self.sentinels, self.unit, self.pooled = sentinels, unit, pooled

    def forward(self, batch: dict[str, Tensor]) -> Tensor | tuple[Tensor, Tensor]:
        """Logits `[batch, classes]`, or of each token `[batch, tokens, outputs]`.

        In training also the term that is added to each loss, if there is one.

        The term is the losses of the sentinels `[batch, sentinels]` (code of PPT), or 1 - cosine(query, keys)
        (LPT Eq. 5).
        """
        read = self.read(batch)
        if self.unit != "example":
            return self.of_tokens(read.states, batch)
        features = self.head.features(read.vector.float())
        logits = self.allowed(self.scaled(features), batch)
        if not self.training:
            return over_views(logits)
        added = read.match
        if self.sentinels:
            said = [self.head.features(state.float()) for state in read.states[:, 1:].unbind(1)]
            pairs = zip(said, self.sentinels, strict=True)
            added = torch.stack([self.head.surprise(*each) for each in pairs], dim=1)
        return logits if added is None else (logits, added)

    def of_tokens(
        self, states: Float[Tensor, "batch tokens width"], batch: dict[str, Tensor]
    ) -> Float[Tensor, "batch tokens outputs"]:
        """The outputs of each token; an answer never begins or ends in padding."""
        if "set" in batch:
            logits = self.head.logits(states.float(), batch["set"])
        else:
            logits = self.scaled(self.head.features(states.float()))
        if self.unit == "token":
            return logits
        return logits.masked_fill(batch["attention_mask"][..., None] == 0, NEVER)

    def features(self, batch: dict[str, Tensor]) -> Float[Tensor, "batch width"]:
        """The input of the last layer, the mean over views."""
        return over_views(self.head.features(self.read(batch).vector.float()))

    def read(self, batch: dict[str, Tensor]) -> Read:
        """What the body returns for a batch; of several views their vectors only, `[batch, views, width]`."""
        if "vector" in batch:
            return Read(batch["vector"])
        pixels = batch.get("pixels")
        if pixels is None or pixels.ndim == 4:
            read = self.body(batch)
            return read if self.pooled is None else Read(self.mean(read.states, batch["attention_mask"]))
        vectors = self.body({"pixels": pixels.flatten(0, 1)}).vector
        return Read(vectors.unflatten(0, pixels.shape[:2]))

    def mean(
        self, states: Float[Tensor, "batch tokens width"], mask: Int[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch width"]:
        """The mean over tokens that are no padding, perhaps of length 1 (Reimers and Gurevych 2019)."""
        there = mask[..., None].float()
        mean = (states.float() * there).sum(1) / there.sum(1)
        return F.normalize(mean, dim=-1) if self.pooled.unit_length else mean

    def scaled(self, features: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch classes"]:
        """Logits; in evaluation divided by weight norms to the power `eta` (GLEE's eta-norm)."""
        logits = self.head.logits(features)
        if self.training or not self.eta:
            return logits
        vectors, bias = self.head.class_vectors(), self.head.bias()
        return scale_by_norm(logits, vectors, bias, self.eta, divide_bias=self.eta_bias)

    def allowed(self, logits: Float[Tensor, "*batch classes"], batch: dict[str, Tensor]) -> Tensor:
        """Logits, with `NEVER` for the options that an example lacks."""
        if "options" not in batch or getattr(self.head, "open", False):
            return logits
        logits = logits.reshape(len(batch["options"]), -1)  # an option may be a sequence of its own
        there = torch.arange(logits.shape[1], device=logits.device) < batch["options"][:, None]
        return logits.masked_fill(~there, NEVER)

    def chosen(self, batch: dict[str, Tensor]) -> Int[Tensor, "batch chosen"] | None:
        """The group prompts of each image, the best first; of several views the last, which is the middle."""
        pixels = batch["pixels"]
        return self.body({"pixels": pixels[:, -1] if pixels.ndim == 5 else pixels}).chosen


def over_views(values: Float[Tensor, "*batch outputs"]) -> Float[Tensor, "batch outputs"]:
    """The mean over the views of each example, where there are several."""
    return values.mean(1) if values.ndim == 3 else values


def compose(
    backbone: Backbone | VisionBackbone,
    run: Run,
    *,
    words: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]] | None = None,
    unit: str = "example",
    sets: Sequence[Sequence[int]] = (),
) -> Model:
    """The model of a run. words: token ids of each output's word, empty if the head reads none.

    texts: token ids of the training texts, from which a soft prompt may be initialised; None if a prompt will
    be loaded. unit: what the outputs are of. sets: of each of joined sets its outputs, which have a head of
    their own. Raises BadInput if the tuner does not fit the backbone, or the head the unit.
    """
    if unit != "example" and run.head.name != "predictor":
        raise BadInput(f"head: {run.head.name} predicts a class of a text; those of tokens take predictor")
    if backbone.reads == "image":
        limits.check(run.tuner, starts=run.start is not None, depth=backbone.depth, size=backbone.size)
    if run.input.name == "tfidf":
        body = Terms(**values(run.input))
    else:
        tuner = limits.sized(run.tuner, classes=len(words), depth=getattr(backbone, "depth", 0))
        body = TUNERS[run.tuner.name](backbone, tuner, words=words, texts=texts)
    made = HEADS[run.head.name]
    if sets:
        heads = [made(backbone, run.head, [words[output] for output in own]) for own in sets]
        head = JoinedHeads(heads, sets, outputs=len(words), missing=NEVER)
    else:
        head = made(backbone, run.head, words)
    if run.head.name == "verbalizer" and run.tuner.name in ("soft_prompt", "prefix", "lora"):
        head.requires_grad_(False)
    return Model(
        body,
        head,
        eta=run.eta,
        eta_bias=run.eta_bias,
        sentinels=spoken(backbone, run),
        unit=unit,
        pooled=run.input if run.input.name == "pooled" else None,
    )


def spoken(backbone: Backbone | VisionBackbone, run: Run) -> tuple[int, ...]:
    """The sentinels whose losses are added, if the run says so and its backbone has sentinels."""
    wanted = run.input.name == "formatted" and run.input.sentinel_loss
    if not wanted or backbone.tokenizer.mask_token_id is not None:
        return ()
    first = sentinel(backbone.tokenizer)
    return (first, backbone.tokenizer.convert_tokens_to_ids(ENDING)) if run.input.ending_loss else (first,)


@torch.no_grad()
def rescaled(model: Model, logits: Float[Tensor, "examples *tokens classes"], tau: float) -> Tensor:
    """Logits on the CPU after tau-norm (Kang et al. 2020, Eq. 3)."""
    if not tau:
        return logits
    return scale_by_norm(logits, model.head.class_vectors().cpu(), model.head.bias().cpu(), tau)


TUNERS = {
    "full": full,
    "frozen": frozen,
    "soft_prompt": soft_prompt,
    "prefix": prefix,
    "lora": lora,
    "prompts": prompts,
    "prompts_shallow": prompts_shallow,
    "group_prompts": group_prompts,
}
