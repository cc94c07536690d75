"""Heads turn the vector at one position into class logits.

GLEE section 2.2: the CLS head over [CLS] (`linear`), and the pretrained masked-language-model head over
[MASK] (`Verbalizer`). LPT section 4.1: the classifier over an image's class token (`predictor`). All have
`features(hidden)`, `logits(features)`, `class_vectors()`, `bias()`, and the `scale` of their logits.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.errors import BadInput, named
from tailprompt.model.backbones import Backbone, VisionBackbone
from tailprompt.model.fitted import FITTED

Hidden = Float[Tensor, "*batch width"]
Logits = Float[Tensor, "*batch classes"]


class Classifier(nn.Module):
    """Layers that compute features, then a predictor with a vector for each class.

    scale: of a cosine predictor, which has no bias; None for a linear predictor. Features come in float32,
    because bfloat16 cannot distinguish a logit of 20 from one of 20.05.
    """

    drawn = False  # whether layers that the checkpoint should have were drawn

    def __init__(self, layers: dict[str, nn.Module], predictor: nn.Linear, *, scale: float | None = None):
        super().__init__()
        self.layers, self.predictor = nn.Sequential(OrderedDict(layers)), predictor
        self.cosine = scale is not None
        self.scale = 1.0 if scale is None else scale

    def features(self, hidden: Hidden) -> Hidden:
        """The input of the predictor."""
        return self.layers(hidden)

    def logits(self, features: Hidden) -> Logits:
        if self.cosine:
            return self.scale * cosine(features, self.class_vectors())
        return self.predictor(features)

    def class_vectors(self) -> Float[Tensor, "classes width"]:
        return self.predictor.weight

    def bias(self) -> Float[Tensor, " classes"]:
        bias = self.predictor.bias
        return self.class_vectors().new_zeros(len(self.class_vectors())) if bias is None else bias


def linear(backbone: Backbone, told, words: list[list[int]]) -> Classifier:
    """GLEE's CLS head: dense -> activation -> dropout -> norm -> predictor (section 2.2).

    told: `components.heads.Linear`. words: one entry a class.
    """
    dense = nn.Linear(backbone.width, backbone.width)
    scale = scale_of(told.predictor)
    predictor = nn.Linear(backbone.width, len(words), bias=scale is None)
    for layer in (dense, predictor):
        nn.init.normal_(layer.weight, std=backbone.initializer_range)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    parts = {
        "dense": dense,
        "activation": named(ACTIVATIONS, told.activation, "activation"),
        "dropout": nn.Dropout(told.dropout),
        "norm": NORMS[told.norm.name](backbone, told.norm),
    }
    return Classifier(parts, predictor, scale=scale)


def predictor(backbone: Backbone | VisionBackbone, told, words: list[list[int]]) -> Classifier:
    """Dropout -> predictor (LPT section 4.1). told: `components.heads.Predictor`.

    The vectors of a cosine predictor have length 1 at the start (code of LPT).
    """
    scale = scale_of(told.predictor)
    made = nn.Linear(backbone.width, len(words), bias=scale is None)
    nn.init.normal_(made.weight, std=backbone.initializer_range)
    if scale is None:
        nn.init.zeros_(made.bias)
    else:
        made.weight.data = F.normalize(made.weight.data, dim=-1)
    return Classifier({"dropout": nn.Dropout(told.dropout)}, made, scale=scale)


def pooler(backbone: Backbone, told, words: list[list[int]]) -> Classifier:
    """The backbone's own pooler (dense -> tanh) -> dropout -> predictor (code of P-Tuning v2).

    A DeBERTa's has a gelu. told: `components.heads.Pooler`. The pooler learns if the body does. One that the
    checkpoint lacks is drawn here and learns, which `drawn` says. Raises BadInput for a backbone without such
    a layer.
    """
    if backbone.pooler is None:
        raise BadInput(
            "head pooler is for a bert, roberta or deberta, whose pooler it reads; take another head"
        )
    dense, own = backbone.pooler()
    dense.requires_grad_(not own or all(value.requires_grad for value in backbone.body.parameters()))
    if not own:
        nn.init.normal_(dense.weight, std=backbone.initializer_range)
        nn.init.zeros_(dense.bias)
    last = predictor(backbone, told, words)
    activation = named(ACTIVATIONS, backbone.pooled, "activation of a pooler")
    parts = {"dense": dense, "activation": activation, "dropout": nn.Dropout(told.dropout)}
    made = Classifier(parts, last.predictor, scale=scale_of(told.predictor))
    made.drawn = not own
    return made


def scale_of(predictor) -> float | None:
    """The scale of a cosine predictor; None for a linear one."""
    return predictor.logit_scale if predictor.name == "cosine" else None


class Verbalizer(nn.Module):
    """The pre-trained head at the mask; a class's logit is the mean over its word's tokens (GLEE, 2.2).

    words: token ids of each class's word. tied: whether the input embedding scores; False gives the scoring
    vectors parameters of their own with the same initial values (GLEE's embedding decoupling, section 4.1).
    decoding: `restricted` scores only the tokens of some word, which changes no class logit. `open` scores
    the whole vocabulary, as in PPT Eq. 2. The logits then have one more column for all other tokens. In
    training it is their log-sum-exp, so that the softmax is over the vocabulary. In evaluation it is their
    maximum, so that the column wins if another token does.
    Raises BadInput for open decoding with words of several tokens, or without tied vectors.
    """

    def __init__(
        self, backbone: Backbone, words: list[list[int]], *, tied: bool = True, decoding: str = "restricted"
    ):
        super().__init__()
        self.scale, self.open = 1.0, decoding == "open"
        if self.open and (len(max(words, key=len)) > 1 or not tied):
            raise BadInput("decoding: open takes words of one token each, and tied: true")
        used = sorted({token for word in words for token in word})
        column = {token: i for i, token in enumerate(used)}
        share = torch.zeros(len(words), len(used))
        for row, word in enumerate(words):
            for token in word:
                share[row, column[token]] += 1 / len(word)
        self.register_buffer("used", torch.tensor(used), persistent=False)
        self.register_buffer("share", share, persistent=False)
        self.transform = backbone.transform
        start = backbone.decoder.weight.detach()[used].float().clone()
        self.own = None if tied else nn.Parameter(start)
        bias = backbone.decoder.bias
        self.token_bias = None if bias is None else nn.Parameter(bias.detach()[used].clone())
        self.embedding = [backbone.decoder]  # in a list: the body owns the tied weight, not this module

    def features(self, hidden: Hidden) -> Hidden:
        return self.transform(hidden)

    def token_vectors(self) -> Float[Tensor, "words width"]:
        return self.embedding[0].weight[self.used].float() if self.own is None else self.own

    def logits(self, features: Hidden) -> Logits:
        classes = F.linear(features.float(), self.token_vectors(), self.token_bias) @ self.share.T
        if not self.open:
            return classes
        others = self.vocabulary(features).index_fill(-1, self.used, -torch.inf)
        rest = others.logsumexp(-1) if self.training else others.amax(-1)  # PPT Eq. 2: the vocabulary
        return torch.cat([classes, rest[:, None]], dim=-1)

    def surprise(self, features: Hidden, token: int) -> Float[Tensor, " batch"]:
        """Minus the log-probability of a token in the whole vocabulary."""
        return -self.vocabulary(features).log_softmax(-1)[:, token]

    def vocabulary(self, features: Hidden) -> Float[Tensor, "batch tokens"]:
        """Logits of all tokens; a backbone that was read in bfloat16 computes them so."""
        embedding = self.embedding[0]
        return embedding(features.to(embedding.weight.dtype)).float()

    def class_vectors(self) -> Float[Tensor, "classes width"]:
        """Mean scoring vector of each class's word, which by linearity scores like the mean of its tokens."""
        return self.share @ self.token_vectors()

    def bias(self) -> Float[Tensor, " classes"]:
        vectors = self.token_vectors()
        return self.share @ (vectors.new_zeros(len(vectors)) if self.token_bias is None else self.token_bias)


def cosine(features: Hidden, vectors: Float[Tensor, "classes width"]) -> Logits:
    """Cosine of the angle between features and class vectors."""
    return F.linear(F.normalize(features, dim=-1), F.normalize(vectors, dim=-1))


def scale_by_norm(
    logits: Logits,
    vectors: Float[Tensor, "classes width"],
    bias: Float[Tensor, " classes"],
    power: float,
    *,
    divide_bias: bool = False,
) -> Logits:
    """Logits of class vectors that are divided by their length to a power: w.x / |w|^power + b.

    This is tau-norm (Kang et al. 2020, Eq. 3) and GLEE's eta-norm. GLEE's released code divides the bias too
    (`divide_bias`).
    """
    length = vectors.norm(dim=-1).clamp(min=1e-12) ** power  # GLEE's eta-norm; Kang et al. 2020, Eq. 3
    return logits / length if divide_bias else (logits - bias) / length + bias


def verbalizer(backbone: Backbone, told, words: list[list[int]]) -> Verbalizer:
    """The pre-trained head over the words of the classes. told: `components.heads.Verbalizer`."""
    check_speaks(backbone, "head: verbalizer")
    return Verbalizer(backbone, words, tied=told.tied, decoding=told.decoding)


def no_norm(backbone: Backbone, told) -> nn.Module:
    """No norm: the features stay as they are."""
    return nn.Identity()


def fresh_norm(backbone: Backbone, told) -> nn.LayerNorm:
    """A layer norm of gain 1 and bias 0. Its epsilon is the checkpoint's or `norm_eps`."""
    norm, eps = backbone.norm, told.norm_eps
    return nn.LayerNorm(norm.normalized_shape, eps=norm.eps if eps == "backbone" else float(eps))


def pretrained_norm(backbone: Backbone, told) -> nn.LayerNorm:
    """A layer norm with the gain and bias of the masked-language-model head (GLEE section 4.3)."""
    check_speaks(backbone, "norm: pretrained")
    norm = fresh_norm(backbone, told)
    norm.load_state_dict(backbone.norm.state_dict())
    return norm


def check_speaks(backbone: Backbone, what: str) -> None:
    """Raise BadInput if a backbone's checkpoint lacks the masked-language-model head that something reads."""
    if not backbone.speaks:
        raise BadInput(
            f"{what} reads a masked-language-model head, which the backbone's checkpoint lacks; "
            "take another head or norm, or another backbone"
        )


ACTIVATIONS = {"tanh": nn.Tanh(), "relu": nn.ReLU(), "gelu": nn.GELU()}
NORMS = {"none": no_norm, "fresh": fresh_norm, "pretrained": pretrained_norm}
HEADS = {"linear": linear, "predictor": predictor, "pooler": pooler, "verbalizer": verbalizer, **FITTED}
