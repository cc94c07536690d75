"""Components of `loss` and `sampler`: what a run minimises, and the order of its examples."""

from __future__ import annotations

from tailprompt.components.declare import component, key

DUAL = {"sampler": ("dual", "dual_as_released")}


@component("cross_entropy", "cross-entropy")
class CrossEntropy:
    """Cross-entropy (GLEE Eqs. 1 and 4)."""


@component("focal", "focal loss")
class Focal:
    """Focal loss (Lin et al. 2017, Eq. 4)."""

    gamma: float = key(1.0, "exponent of 1 - p", minimum=0)


@component("focal_as_released", "focal loss, as released")
class FocalAsReleased:
    """What GLEE's code computes as focal loss."""

    gamma: float = key(1.0, "exponent of 1 - log p", minimum=0)


@component("logit_adjusted", "logit adjustment")
class LogitAdjusted:
    """Logit adjustment (Menon et al. 2021, Eq. 10)."""

    prior: float = key(1.0, "exponent of the class prior (tau in the paper)")


@component("balanced_softmax", "balanced softmax")
class BalancedSoftmax:
    """Balanced softmax (Ren et al. 2020, Eq. 3)."""


@component("class_balanced", "class-balanced loss")
class ClassBalanced:
    """Class-balanced loss (Cui et al. 2019, Eq. 9)."""

    beta: float = key(0.999, "beta in the effective number of examples", minimum=0, exclusiveMaximum=1)


@component("ldam", "LDAM")
class Ldam:
    """LDAM (Cao et al. 2019, Eq. 13)."""

    scaled = True  # takes the scale of the logits

    margin: float = key(0.5, "the largest margin, C", minimum=0)


@component("gcl", "GCL")
class Gcl:
    """Gaussian clouded logits (LPT Eqs. 6 and 7)."""

    scaled = True  # takes the scale of the logits

    noise: float = key(1.0, "factor of the noise", minimum=0)


POSITIVE = {"default": 0.0, "says": "focus on the label (LPT Eq. 8, appendix B)", "minimum": 0}
NEGATIVE = {"default": 4.0, "says": "focus on the other classes (LPT Eq. 8, appendix B)", "minimum": 0}
INSTANCE = {"default": None, "when": DUAL, "minimum": 0}
POSITIVE_INSTANCE = {
    **INSTANCE,
    "says": "lambda_positive in the shuffled branch, if it differs (0.5 in LPT's code)",
}
NEGATIVE_INSTANCE = {
    **INSTANCE,
    "says": "lambda_negative in the shuffled branch, if it differs (8 in LPT's code)",
}


@component("asymmetric_gcl", "A-GCL")
class AsymmetricGcl:
    """A-GCL (LPT Eq. 8)."""

    scaled = True  # takes the scale of the logits

    noise: float = key(1.0, "factor of the noise", minimum=0)
    lambda_positive: float = key(**POSITIVE)
    lambda_negative: float = key(**NEGATIVE)
    lambda_positive_instance: float | None = key(**POSITIVE_INSTANCE)
    lambda_negative_instance: float | None = key(**NEGATIVE_INSTANCE)


@component("asymmetric_gcl_as_released", "A-GCL, as released")
class AsymmetricGclAsReleased:
    """What LPT's code computes as A-GCL."""

    scaled = True  # takes the scale of the logits

    noise: float = key(0.5, "factor of the noise, which is normalised", minimum=0)
    margin: float = key(0.1, "margin of the label", minimum=0)
    smoothing: float = key(0.1, "label smoothing", minimum=0, exclusiveMaximum=1)
    lambda_positive: float = key(**POSITIVE)
    lambda_negative: float = key(**NEGATIVE)
    lambda_positive_instance: float | None = key(**POSITIVE_INSTANCE)
    lambda_negative_instance: float | None = key(**NEGATIVE_INSTANCE)


@component("shuffled")
class Shuffled:
    """Each example once an epoch."""


@component("balanced")
class Balanced:
    """All classes equally often (Kang et al. 2020, Eq. 1, q = 0)."""


@component("square_root")
class SquareRoot:
    """Classes in proportion to the square root of their counts (Kang et al. 2020, Eq. 1, q = 1/2)."""


@component("dual")
class Dual:
    """A balanced and a shuffled batch side by side (LPT section 4.2)."""

    dual_weight: float = key(0.5, "eta: initial weight of the shuffled branch (LPT appendix B)", minimum=0)


@component("dual_as_released")
class DualAsReleased:
    """LPT's code: classes in turn with four images of each, beside draws with replacement."""

    dual_weight: float = key(0.5, "eta: initial weight of the second branch (LPT appendix B)", minimum=0)


Loss = (
    CrossEntropy | Focal | FocalAsReleased | LogitAdjusted | BalancedSoftmax | ClassBalanced | Ldam | Gcl
    | AsymmetricGcl | AsymmetricGclAsReleased
)  # fmt: skip
Sampler = Shuffled | Balanced | SquareRoot | Dual | DualAsReleased
