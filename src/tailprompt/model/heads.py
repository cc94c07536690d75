"""What turns the vector at one position into class logits.

GLEE section 2.2: the CLS head over [CLS] (`Linear`), and the pretrained masked-language-model head over
[MASK] (`Verbalizer`). LPT section 4.1: the classifier over an image's class token (`Predictor`). All have
`logits(features)`, `features(hidden)`, `class_vectors()` and `bias()`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.errors import BadInput, named
from tailprompt.model.backbones import Backbone

Hidden = Float[Tensor, "batch width"]
Logits = Float[Tensor, "batch classes"]


class Linear(nn.Module):
    """dense -> activation -> dropout -> (layer norm) -> predictor.

    norm: none; `fresh` starts at gain 1 and bias 0; `pretrained` starts from the masked-language-model
    head's gain and bias (GLEE section 4.3). predictor: linear, or cosine with `logit_scale`.
    """

    def __init__(
        self,
        backbone: Backbone,
        classes: int,
        *,
        activation: str = "tanh",
        norm: str = "none",
        norm_eps: float | str = "backbone",
        dropout: float = 0.1,
        predictor: str = "linear",
        logit_scale: float = 30.0,
    ):
        super().__init__()
        self.dense = nn.Linear(backbone.width, backbone.width)
        self.activation = named(ACTIVATIONS, activation, "activation")
        self.dropout = nn.Dropout(dropout)
        self.norm = named(NORMS, norm, "norm")(backbone.norm, norm_eps)
        self.predictor = nn.Linear(backbone.width, classes)
        self.cosine, self.logit_scale = predictor == "cosine", logit_scale
        for layer in (self.dense, self.predictor):
            nn.init.normal_(layer.weight, std=backbone.initializer_range)
            nn.init.zeros_(layer.bias)

    def features(self, hidden: Hidden) -> Hidden:
        """What the predictor sees."""
        return self.norm(self.dropout(self.activation(self.dense(hidden))))

    def logits(self, features: Hidden) -> Logits:
        if self.cosine:
            return self.logit_scale * cosine(features, self.class_vectors())
        return self.predictor(features)

    def class_vectors(self) -> Float[Tensor, "classes width"]:
        return self.predictor.weight

    def bias(self) -> Float[Tensor, " classes"]:
        return torch.zeros_like(self.predictor.bias) if self.cosine else self.predictor.bias


class Predictor(nn.Module):
    """dropout -> predictor: linear, or cosine with `logit_scale` and without bias (LPT section 4.1).

    initializer_range: deviation of a linear one's weights. Vectors of a cosine one start at length 1 (code
    of LPT). Logits are in float32 under autocast too: bfloat16 tells no 20 from 20.05.
    """

    def __init__(
        self,
        width: int,
        classes: int,
        *,
        dropout: float = 0.1,
        predictor: str = "cosine",
        logit_scale: float = 20.0,
        initializer_range: float = 0.02,
    ):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.cosine, self.logit_scale = predictor == "cosine", logit_scale
        self.predictor = nn.Linear(width, classes, bias=not self.cosine)
        nn.init.normal_(self.predictor.weight, std=initializer_range)
        if self.cosine:
            self.predictor.weight.data = F.normalize(self.predictor.weight.data, dim=-1)
        else:
            nn.init.zeros_(self.predictor.bias)

    def features(self, hidden: Hidden) -> Hidden:
        """What the predictor sees."""
        return self.dropout(hidden)

    def logits(self, features: Hidden) -> Logits:
        with torch.autocast(features.device.type, enabled=False):
            if self.cosine:
                return self.logit_scale * cosine(features.float(), self.class_vectors())
            return self.predictor(features.float())

    def class_vectors(self) -> Float[Tensor, "classes width"]:
        return self.predictor.weight

    def bias(self) -> Float[Tensor, " classes"]:
        vectors = self.class_vectors()
        return vectors.new_zeros(len(vectors)) if self.cosine else self.predictor.bias


class Verbalizer(nn.Module):
    """The pretrained head at the mask; a class's logit is the mean over its word's tokens (GLEE section 2.2).

    words: token ids of each class's word. tied: score by the input embedding itself; False gives the
    scoring vectors a life of their own, from the same values (GLEE's embedding decoupling, section 4.1).
    decoding: restricted to the words' tokens, or `open` to the whole vocabulary, as in PPT Eq. 2; logits then
    have one column more, of all other tokens: in training their log-sum-exp, so that a softmax is the
    vocabulary's, and else their maximum, so that it wins where another token does.
    Restricted, only rows of the vocabulary that some word uses are scored, which changes no class logit.
    Raises BadInput for open decoding of words of several tokens.
    """

    def __init__(
        self,
        backbone: Backbone,
        words: list[list[int]],
        *,
        tied: bool = True,
        decoding: str = "restricted",
    ):
        super().__init__()
        self.open = decoding == "open"
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
        others = self.embedding[0](features).to(classes.dtype).index_fill(-1, self.used, -torch.inf)
        rest = others.logsumexp(-1) if self.training else others.amax(-1)
        return torch.cat([classes, rest[:, None]], dim=-1)

    def surprise(self, features: Hidden, token: int) -> Float[Tensor, " batch"]:
        """Minus the log-probability of a token in the whole vocabulary."""
        return -self.embedding[0](features).float().log_softmax(-1)[:, token]

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
    """Logits of class vectors divided by their length to a power: w.x / |w|^power + b.

    tau-norm (Kang et al. 2020, Eq. 3) and GLEE's eta-norm. The released code of GLEE divides the bias as
    well (`divide_bias`).
    """
    length = vectors.norm(dim=-1).clamp(min=1e-12) ** power
    return logits / length if divide_bias else (logits - bias) / length + bias


def no_norm(pretrained: nn.LayerNorm, eps: float | str) -> nn.Module:
    return nn.Identity()


def fresh_norm(pretrained: nn.LayerNorm, eps: float | str) -> nn.LayerNorm:
    return nn.LayerNorm(pretrained.normalized_shape, eps=pretrained.eps if eps == "backbone" else float(eps))


def pretrained_norm(pretrained: nn.LayerNorm, eps: float | str) -> nn.LayerNorm:
    norm = fresh_norm(pretrained, eps)
    norm.load_state_dict(pretrained.state_dict())
    return norm


ACTIVATIONS = {"tanh": nn.Tanh(), "relu": nn.ReLU(), "gelu": nn.GELU()}
NORMS = {"none": no_norm, "fresh": fresh_norm, "pretrained": pretrained_norm}
