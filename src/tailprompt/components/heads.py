"""Components of `head`: what turns a vector into class logits."""

from __future__ import annotations

from typing import Literal

from tailprompt.components.declare import choice, component, key


@component("linear")
class LinearPredictor:
    """A vector and a bias for each class."""


@component("cosine", "cosine classifier")
class CosinePredictor:
    """The scaled cosine between the features and the vector of each class (LPT section 4.1)."""

    logit_scale: float = key(
        20.0,
        "scale of logits, and of margins and noise in the loss (20 in LPT's code, 30 in LDAM's)",
        exclusiveMinimum=0,
    )


@component("none")
class NoNorm:
    """No layer norm."""


NORM_EPS = {
    "default": "backbone",
    "says": "epsilon of the norm; backbone takes the checkpoint's",
    "exclusiveMinimum": 0,
    "pattern": "^backbone$",
    "description": "backbone (that of the checkpoint) or a number above 0",
}


@component("fresh")
class FreshNorm:
    """A layer norm of gain 1 and bias 0."""

    norm_eps: float | str = key(**NORM_EPS)


@component("pretrained")
class PretrainedNorm:
    """A layer norm that begins as the masked-language-model head's (GLEE section 4.3)."""

    norm_eps: float | str = key(**NORM_EPS)


DROPOUT = {"minimum": 0, "exclusiveMaximum": 1}
HEAD_START = Literal["random", "class_means"]


@component("linear")
class Linear:
    """GLEE's CLS head: dense, activation, dropout, perhaps layer norm, predictor (section 2.2)."""

    activation: Literal["tanh", "relu", "gelu"] = key("tanh", "activation after the dense layer")
    norm: NoNorm | FreshNorm | PretrainedNorm = choice("none", "norm before the predictor (GLEE section 4.3)")
    dropout: float = key(0.1, "dropout of the features", **DROPOUT)
    predictor: LinearPredictor | CosinePredictor = choice("linear", "how class logits are computed")
    head_start: HEAD_START = key("random", "class_means: class vectors begin as LIFT's (Shi et al. 2024)")


@component("predictor")
class Predictor:
    """One layer on the features (LPT section 4.1)."""

    dropout: float = key(0.0, "dropout of the features (0.1 in LPT's code)", **DROPOUT)
    predictor: LinearPredictor | CosinePredictor = choice("linear", "how class logits are computed")
    head_start: HEAD_START = key("random", "class_means: class vectors begin as LIFT's (Shi et al. 2024)")


@component("pooler")
class Pooler:
    """The backbone's own pooler (dense and tanh), dropout, one layer (P-Tuning v2's code).

    The pooler learns where the body does. One that its checkpoint lacks is drawn, and always learns.
    """

    dropout: float = key(0.1, "dropout of the features (0.1 in BERT's own)", **DROPOUT)
    predictor: LinearPredictor | CosinePredictor = choice("linear", "how class logits are computed")
    head_start: HEAD_START = key("random", "class_means: class vectors begin as LIFT's (Shi et al. 2024)")


@component("logistic_regression")
class LogisticRegression:
    """Logistic regression on the features, fitted to its optimum (scikit-learn)."""

    fitted = True
    C: tuple[float, ...] = key(
        (1.0, 10.0, 100.0),
        "inverse strengths of the L2 penalty, of which dev chooses one",
        items={"type": "number", "exclusiveMinimum": 0},
        minItems=1,
    )
    class_weight: Literal["balanced", "none"] = key(
        "balanced", "balanced weights an example by one over the examples of its class"
    )


@component("neighbours")
class Neighbours:
    """The votes of the nearest training examples by cosine (Cover and Hart 1967)."""

    fitted = True
    neighbours: tuple[int, ...] = key(
        (1, 5, 20),
        "numbers of neighbours, of which dev chooses one",
        items={"type": "integer", "minimum": 1},
        minItems=1,
    )


@component("class_means")
class ClassMeans:
    """The nearest mean of the training examples of a class (Mensink et al. 2013, Eq. 2)."""

    fitted = True


@component("verbalizer")
class Verbalizer:
    """The pre-trained language-model head at the mask, over the words of the classes (GLEE section 2.2)."""

    tied: bool = key(True, "false trains the output embedding separately from the input (GLEE section 4.1)")
    decoding: Literal["restricted", "open"] = key(
        "restricted", "over the answers' tokens only, or over the vocabulary (PPT Eq. 2)"
    )
    verbalizer: str | None = key(None, "CSV file of label,words; without one the name of a class is its word")
