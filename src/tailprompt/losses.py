"""Losses for long-tailed labels.

Each takes logits, labels and the training counts of the classes, and returns one loss per example;
the loop takes the mean. A class without training examples counts as having one.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

Logits = Float[Tensor, "batch classes"]
Labels = Int[Tensor, " batch"]
Counts = Float[Tensor, " classes"]
PerExample = Float[Tensor, " batch"]


def cross_entropy(logits: Logits, labels: Labels, counts: Counts) -> PerExample:
    """Negative log-probability of the label (GLEE Eqs. 1 and 4)."""
    return F.cross_entropy(logits, labels, reduction="none")


def focal(logits: Logits, labels: Labels, counts: Counts, *, gamma: float = 1.0) -> PerExample:
    """Cross-entropy that forgets easy examples (Lin et al. 2017, Eq. 4), without class weights.

    GLEE's released code raises 1 - log p where 1 - p belongs; that is `focal_as_released`.
    """
    cost = cross_entropy(logits, labels, counts)
    return (1 - torch.exp(-cost)) ** gamma * cost


def focal_as_released(logits: Logits, labels: Labels, counts: Counts, *, gamma: float = 1.0) -> PerExample:
    """What GLEE's released code computes as focal loss: (1 - log p)^gamma times the cross-entropy."""
    cost = cross_entropy(logits, labels, counts)
    return (1 + cost) ** gamma * cost


def logit_adjusted(logits: Logits, labels: Labels, counts: Counts, *, prior: float = 1.0) -> PerExample:
    """Cross-entropy of logits raised by `prior` times the log class prior (Menon et al. 2021, Eq. 10)."""
    frequency = counts.clamp(min=1)
    return F.cross_entropy(logits + prior * torch.log(frequency / frequency.sum()), labels, reduction="none")


def balanced_softmax(logits: Logits, labels: Labels, counts: Counts) -> PerExample:
    """Softmax weighted by the class counts (Ren et al. 2020, Eq. 3): logit adjustment with prior 1."""
    return logit_adjusted(logits, labels, counts, prior=1.0)


def class_balanced(logits: Logits, labels: Labels, counts: Counts, *, beta: float = 0.999) -> PerExample:
    """Cross-entropy weighted by the inverse effective number of examples (Cui et al. 2019, Eq. 9).

    Weights sum to the number of classes, as there.
    """
    weight = (1 - beta) / (1 - beta ** counts.clamp(min=1))
    weight = weight * len(counts) / weight.sum()
    return weight[labels] * cross_entropy(logits, labels, counts)


def ldam(
    logits: Logits, labels: Labels, counts: Counts, *, margin: float = 0.5, logit_scale: float = 30.0
) -> PerExample:
    """Cross-entropy with a margin proportional to n^(-1/4), at most `margin` (Cao et al. 2019, Eq. 13).

    `logits` are already scaled by `logit_scale` (30 for a cosine predictor), so the margin is scaled too.
    """
    margins = counts.clamp(min=1) ** -0.25
    margins = margins * (margin / margins.max())
    lowered = logits - logit_scale * F.one_hot(labels, len(counts)) * margins
    return F.cross_entropy(lowered, labels, reduction="none")


LOSSES = {
    "cross_entropy": (cross_entropy, ()),
    "focal": (focal, ("gamma",)),
    "focal_as_released": (focal_as_released, ("gamma",)),
    "logit_adjusted": (logit_adjusted, ("prior",)),
    "balanced_softmax": (balanced_softmax, ()),
    "class_balanced": (class_balanced, ("beta",)),
    "ldam": (ldam, ("margin", "logit_scale")),
}
"""Name -> the function and the settings it takes."""
