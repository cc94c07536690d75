"""Components of training: optimizers, schedules, augmentation and the loop."""

from __future__ import annotations

from tailprompt.components.declare import choice, component, key, part
from tailprompt.components.losses import Loss, Sampler


@component("adamw")
class Adamw:
    """AdamW (Loshchilov and Hutter 2019)."""

    weight_decay: float = key(0.0, "decoupled weight decay", minimum=0)
    adam_eps: float = key(1e-8, "Adam's epsilon", exclusiveMinimum=0)


@component("sgd")
class Sgd:
    """Stochastic gradient descent with momentum."""

    momentum: float = key(0.9, "share of the last update that is kept", minimum=0, exclusiveMaximum=1)
    weight_decay: float = key(0.0, "L2 penalty", minimum=0)


@component("gnm")
class Gnm:
    """SGD on gradients taken beside the weights, at a random place (GNM, Li et al. 2024)."""

    rho: float = key(0.05, "largest distance of each weight to that place", minimum=0)
    momentum: float = key(0.9, "share of the last update that is kept", minimum=0, exclusiveMaximum=1)
    weight_decay: float = key(0.0, "L2 penalty", minimum=0)


@component("linear")
class LinearDecay:
    """Falls linearly to zero at the last step (GLEE section 3.1)."""


@component("cosine")
class Cosine:
    """Falls along half a cosine (Loshchilov and Hutter 2017, Eq. 5, without restarts)."""


@component("cosine_as_released")
class CosineAsReleased:
    """Falls along a cosine once an epoch (LPT's code)."""

    of_rate = True  # takes the learning rate, as its warm-up begins at 1e-6


@component("constant")
class Constant:
    """Stays constant (PPT appendix C)."""


@component("inverse_root")
class InverseRoot:
    """Falls as 1 / sqrt(step + 1) (code of PPT)."""


@component("exponential")
class Exponential:
    """Falls by the same factor after each epoch (P-Tuning v2's code for tags and answers)."""


Optimizer = Adamw | Sgd | Gnm
Schedule = LinearDecay | Cosine | CosineAsReleased | Constant | InverseRoot | Exponential


@component("none")
class Whole:
    """The whole image, resized."""


@component("pad_crop")
class PadCrop:
    """A crop of the image after padding by an eighth of its side."""


@component("resized_crop")
class ResizedCrop:
    """A crop of random size and shape, resized (LPT appendix B)."""

    crop_scale: float = key(0.08, "smallest share of the area in a crop", exclusiveMinimum=0, maximum=1)


@component("images")
class Augmentation:
    """Views of images in training."""

    augment: Whole | PadCrop | ResizedCrop = choice("resized_crop", "how an image is cropped")
    flip: bool = key(True, "mirror half of the images (LPT's code; its text names crop, resize and Mixup)")
    mixup: float = key(
        0.0,
        "shares from Beta(mixup, mixup), 0 for none (1 in LPT's helper, never called in phase 2)",
        minimum=0,
    )
    compile: bool = key(
        False, "true compiles the ViT's block on a GPU, which takes a minute and then saves time"
    )


@component("training")
class Training:
    """The training loop and what it minimises."""

    sampler: Sampler = choice("shuffled", "the order of an epoch")
    loss: Loss = choice("cross_entropy", "the loss of an example")
    optimizer: Optimizer = choice("adamw", "the optimizer")
    schedule: Schedule = choice("linear", "the course of the learning rate after the warm-up")
    lr: float = key(says="the highest learning rate", exclusiveMinimum=0)
    warmup: float = key(0.0, "epochs in which the learning rate rises", minimum=0)
    batch: int = key(says="examples a step; dual sampling takes twice as many", minimum=1)
    epochs: float = key(says="most epochs of training", exclusiveMinimum=0, maximum=1e9)
    patience: float = key(says="epochs without a better dev score before training stops", minimum=0)
    evaluate_every: int = key(0, "steps between evaluations; 0 evaluates once an epoch", minimum=0)
    clip: float = key(0.0, "largest norm of the gradient; 0 does not clip", minimum=0)
    bucket: int = key(1, "batches that are sorted by length together; 1 is a plain shuffle", minimum=1)
    images: Augmentation = part(when={"input": ("pixels",)})
