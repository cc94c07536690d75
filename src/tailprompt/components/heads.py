"""What turns a vector into class logits."""

from __future__ import annotations

from typing import Literal

from tailprompt.components.declare import choice, component, key


@component("linear")
class LinearPredictor:
    """A vector and a bias for each class."""


@component("cosine")
class CosinePredictor:
    """The cosine of the features and each class's vector, scaled (LPT section 4.1)."""

    logit_scale: float = key(
        20.0,
        "of the logits, and so of a loss's margins and noise (20 in LPT's code, 30 in LDAM's)",
        exclusiveMinimum=0,
    )


@component("none")
class NoNorm:
    """No layer norm."""


@component("fresh")
class FreshNorm:
    """A layer norm of gain 1 and bias 0."""

    norm_eps: float | str = key(
        "backbone",
        "backbone: that of the checkpoint",
        exclusiveMinimum=0,
        pattern="^backbone$",
        description="backbone (that of the checkpoint) or a number above 0",
    )


@component("pretrained")
class PretrainedNorm:
    """A layer norm that begins as the masked-language-model head's (GLEE section 4.3)."""

    norm_eps: float | str = key(
        "backbone",
        "backbone: that of the checkpoint",
        exclusiveMinimum=0,
        pattern="^backbone$",
        description="backbone (that of the checkpoint) or a number above 0",
    )


DROPOUT = dict(minimum=0, exclusiveMaximum=1)
HEAD_START = Literal["random", "class_means"]


@component("linear")
class Linear:
    """GLEE's CLS head: dense, activation, dropout, perhaps layer norm, predictor (section 2.2)."""

    activation: Literal["tanh", "relu", "gelu"] = key("tanh", "after the dense layer")
    norm: NoNorm | FreshNorm | PretrainedNorm = choice("none", "before the predictor (GLEE section 4.3)")
    dropout: float = key(0.1, "of the features", **DROPOUT)
    predictor: LinearPredictor | CosinePredictor = choice("linear", "of the classes")
    head_start: HEAD_START = key("random", "class_means: class vectors begin as LIFT's (Shi et al. 2024)")


@component("predictor")
class Predictor:
    """One layer on the features (LPT section 4.1)."""

    dropout: float = key(0.0, "of the features (0.1 in LPT's code)", **DROPOUT)
    predictor: LinearPredictor | CosinePredictor = choice("linear", "of the classes")
    head_start: HEAD_START = key("random", "class_means: class vectors begin as LIFT's (Shi et al. 2024)")


@component("verbalizer")
class Verbalizer:
    """The pretrained language-model head at the mask, over the classes' words (GLEE section 2.2)."""

    tied: bool = key(True, "false trains the output embedding apart from the input one (GLEE section 4.1)")
    decoding: Literal["restricted", "open"] = key(
        "restricted", "among the answers' tokens, or over the vocabulary (PPT Eq. 2)"
    )
    verbalizer: str | None = key(None, "CSV of label,words; else a class's word is its name")
