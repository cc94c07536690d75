"""Losses for long-tailed labels.

Each takes logits, labels and the number of training examples of each class, and returns a loss per example.
The training loop takes the mean. A class without training examples counts as having one.
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
    return F.cross_entropy(logits, labels, reduction="none")  # GLEE Eq. 1, and of a prompt Eq. 4


def focal(logits: Logits, labels: Labels, counts: Counts, *, gamma: float) -> PerExample:
    """Cross-entropy that down-weights easy examples (Lin et al. 2017, Eq. 4), without class weights.

    GLEE's released code has 1 - log p in the place of 1 - p; that is `focal_as_released`.
    """
    cost = cross_entropy(logits, labels, counts)
    return torch.exp(gamma * log_rest(F.log_softmax(logits, dim=-1), labels)) * cost


def focal_as_released(logits: Logits, labels: Labels, counts: Counts, *, gamma: float) -> PerExample:
    """What GLEE's released code computes as focal loss: (1 - log p)^gamma times the cross-entropy."""
    cost = cross_entropy(logits, labels, counts)
    return (1 + cost) ** gamma * cost


def logit_adjusted(logits: Logits, labels: Labels, counts: Counts, *, prior: float) -> PerExample:
    """Cross-entropy of logits plus `prior` times the log class prior (Menon et al. 2021, Eq. 10)."""
    frequency = counts.clamp(min=1)
    return F.cross_entropy(logits + prior * torch.log(frequency / frequency.sum()), labels, reduction="none")


def balanced_softmax(logits: Logits, labels: Labels, counts: Counts) -> PerExample:
    """Softmax weighted by the class counts (Ren et al. 2020, Eq. 3): logit adjustment with prior 1."""
    return logit_adjusted(logits, labels, counts, prior=1.0)


def class_balanced(logits: Logits, labels: Labels, counts: Counts, *, beta: float) -> PerExample:
    """Cross-entropy weighted by the inverse effective number of examples (Cui et al. 2019, Eq. 9).

    The weights sum to the number of classes, as in the paper.
    """
    weight = (1 - beta) / (1 - beta ** counts.clamp(min=1))
    weight = weight * len(counts) / weight.sum()
    return weight[labels] * cross_entropy(logits, labels, counts)


def ldam(logits: Logits, labels: Labels, counts: Counts, *, margin: float, scale: float) -> PerExample:
    """Cross-entropy with a margin proportional to n^(-1/4), at most `margin` (Cao et al. 2019, Eq. 13).

    `logits` are already multiplied by `scale` (30 for a cosine predictor), so the margin is too.
    """
    margins = counts.clamp(min=1) ** -0.25
    margins = margins * (margin / margins.max())
    lowered = logits - scale * F.one_hot(labels, len(counts)) * margins
    return F.cross_entropy(lowered, labels, reduction="none")


def gcl(
    logits: Logits,
    labels: Labels,
    counts: Counts,
    *,
    noise: float,
    scale: float,
    epsilon: Logits | None = None,
) -> PerExample:
    """Cross-entropy of logits that are lowered at random, more so for rarer classes (LPT Eqs. 6 and 7).

    Gaussian clouded logits, Li et al. 2022. `logits` are already multiplied by `scale` (alpha), so the noise
    is too, times `noise` (1 in the paper). epsilon: standard normal, drawn unless given. At LPT's scale of 20
    the noise drowns the cosines; use the released form there.
    """
    lowered = clouded(logits, counts, noise, scale, epsilon)
    return F.cross_entropy(lowered, labels, reduction="none")  # LPT Eq. 7


def asymmetric_gcl(
    logits: Logits,
    labels: Labels,
    counts: Counts,
    *,
    noise: float,
    scale: float,
    lambda_positive: float,
    lambda_negative: float,
    epsilon: Logits | None = None,
) -> PerExample:
    """GCL over all classes, weighted (1 - p)^lambda_positive at the label and p^lambda_negative elsewhere.

    This is LPT Eq. 8 with the minus sign that is missing in print. A large lambda_negative leaves only the
    term of the label. With 0 the other classes count as much as the label, which is not cross-entropy.
    """
    log_p = F.log_softmax(clouded(logits, counts, noise, scale, epsilon), dim=-1)  # LPT Eq. 7
    return asymmetric(log_p, labels, torch.ones_like(log_p), lambda_positive, lambda_negative)


def asymmetric_gcl_as_released(
    logits: Logits,
    labels: Labels,
    counts: Counts,
    *,
    noise: float,
    margin: float,
    scale: float,
    smoothing: float,
    lambda_positive: float,
    lambda_negative: float,
    epsilon: Logits | None = None,
) -> PerExample:
    """What LPT's released code computes as A-GCL, on cosines times `scale`.

    The noise is a third of |epsilon|, at most 1, times `noise` for the rarest class and 0 for the largest.
    The label has a margin. Label smoothing gives the other classes their terms. Without smoothing and with
    lambda_positive 0 this is GCL as Li et al. released it.
    """
    size = rarity(counts)
    size = size / size.max().clamp(min=1e-12)
    epsilon = torch.randn_like(logits) if epsilon is None else epsilon
    label = F.one_hot(labels, len(counts))
    lowered = logits - scale * (noise * size * (epsilon / 3).abs().clamp(max=1) + margin * label)
    weight = (1 - smoothing) * label + smoothing / len(counts)
    return asymmetric(F.log_softmax(lowered, dim=-1), labels, weight, lambda_positive, lambda_negative)


def rarity(counts: Counts) -> Counts:
    """Log of the ratio of the largest class to each class: log n_max - log n."""
    frequency = counts.clamp(min=1).log()
    return frequency.max() - frequency


def clouded(logits: Logits, counts: Counts, noise: float, scale: float, epsilon: Logits | None) -> Logits:
    """alpha (s - noise (log n_max - log n) |epsilon|), with logits = alpha s (LPT Eq. 6)."""
    epsilon = torch.randn_like(logits) if epsilon is None else epsilon
    return logits - scale * noise * rarity(counts) * epsilon.abs()  # LPT Eq. 6


def asymmetric(
    log_p: Logits, labels: Labels, weight: Logits, lambda_positive: float, lambda_negative: float
) -> PerExample:
    """The negated sum of LPT Eq. 8, with the term of each class times its weight."""
    label = F.one_hot(labels, log_p.shape[-1]).bool()
    rest = log_rest(log_p, labels)[:, None]
    focus = torch.exp(torch.where(label, lambda_positive * rest, lambda_negative * log_p))
    return -(weight * focus * log_p).sum(dim=-1)  # LPT Eq. 8


def log_rest(log_p: Logits, labels: Labels) -> PerExample:
    """log(1 - p) of the label, as the logarithm of the sum of the other probabilities.

    The slope of (1 - p)^power is infinite at p = 1 for a power below 1. There the gradient of the plain
    formula is NaN, as in the released code of LPT.
    """
    label = F.one_hot(labels, log_p.shape[-1]).bool()
    return log_p.masked_fill(label, -torch.inf).logsumexp(dim=-1)


LOSSES = {
    "cross_entropy": cross_entropy,
    "focal": focal,
    "focal_as_released": focal_as_released,
    "logit_adjusted": logit_adjusted,
    "balanced_softmax": balanced_softmax,
    "class_balanced": class_balanced,
    "ldam": ldam,
    "gcl": gcl,
    "asymmetric_gcl": asymmetric_gcl,
    "asymmetric_gcl_as_released": asymmetric_gcl_as_released,
}
