"""How a run is trained."""

from __future__ import annotations

from tailprompt.components.declare import choice, component, key, part
from tailprompt.components.losses import Loss, Sampler


@component("adamw")
class Adamw:
    """Loshchilov and Hutter 2019."""

    weight_decay: float = key(0.0, "apart from the gradient", minimum=0)
    adam_eps: float = key(1e-8, "epsilon of the denominator", exclusiveMinimum=0)


@component("sgd")
class Sgd:
    """Stochastic gradient descent."""

    momentum: float = key(0.9, "of the gradient", minimum=0, exclusiveMaximum=1)
    weight_decay: float = key(0.0, "added to the gradient", minimum=0)


@component("linear")
class LinearDecay:
    """Down to zero at the last step (GLEE section 3.1)."""


@component("cosine")
class Cosine:
    """Down along half a cosine (Loshchilov and Hutter 2017, Eq. 5, without restarts)."""


@component("cosine_as_released")
class CosineAsReleased:
    """LPT's code: a step an epoch."""


@component("constant")
class Constant:
    """Not down at all (PPT appendix C)."""


@component("inverse_root")
class InverseRoot:
    """1 / sqrt(step + 1) (code of PPT)."""


@component("none")
class Whole:
    """The whole image, resized."""


@component("pad_crop")
class PadCrop:
    """A crop of the image with a border of an eighth of its side."""


@component("resized_crop")
class ResizedCrop:
    """A crop of any size and shape, resized (LPT appendix B)."""

    crop_scale: float = key(0.08, "its least share of the area", exclusiveMinimum=0, maximum=1)


@component("images")
class Augmentation:
    """Views of images in training."""

    augment: Whole | PadCrop | ResizedCrop = choice("resized_crop", "how an image is cut")
    flip: bool = key(True, "mirror half of the images (LPT's code; its text names crop, resize and Mixup)")
    mixup: float = key(
        0.0, "Beta(mixup, mixup), 0 for none (1 in LPT's helper, which its phase 2 never calls)", minimum=0
    )
    compile: bool = key(False, "compile the ViT's block on a GPU: a minute at first, faster then")


@component("training")
class Training:
    """The loop and what it minimises."""

    sampler: Sampler = choice("shuffled", "the order of an epoch")
    loss: Loss = choice("cross_entropy", "the loss of an example")
    optimizer: Adamw | Sgd = choice("adamw", "what takes a step")
    schedule: LinearDecay | Cosine | CosineAsReleased | Constant | InverseRoot = choice(
        "linear", "of the learning rate after warm-up"
    )
    lr: float = key(says="the highest learning rate", exclusiveMinimum=0)
    warmup: float = key(0.0, "epochs in which it rises", minimum=0)
    batch: int = key(says="examples a step; dual sampling takes as many again", minimum=1)
    epochs: float = key(says="epochs at most", exclusiveMinimum=0)
    patience: float = key(says="epochs without a better dev score before training stops", minimum=0)
    evaluate_every: int = key(0, "steps; 0 for once an epoch", minimum=0)
    clip: float = key(0.0, "largest norm of the gradient, 0 for any", minimum=0)
    bucket: int = key(1, "batches sorted by length together, to pad less; 1 is a plain shuffle", minimum=1)
    images: Augmentation = part(when={"input": ("pixels",)})
