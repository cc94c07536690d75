"""The order of an epoch: which examples it has, and which of them share a batch.

A sampler maps labels and a generator to as many example indices as there are examples. Dual sampling gives
two rows of indices, whose batches share a step.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Generator, Tensor

Labels = Int[Tensor, " examples"]


def shuffled(labels: Labels, generator: Generator) -> Int[Tensor, " examples"]:
    """Each example once."""
    return torch.randperm(len(labels), generator=generator)


def balanced(labels: Labels, generator: Generator) -> Int[Tensor, " examples"]:
    """All classes equally often (Kang et al. 2020, Eq. 1 with q = 0)."""
    return weighted(labels, generator, power=0.0)


def square_root(labels: Labels, generator: Generator) -> Int[Tensor, " examples"]:
    """Classes in proportion to the square root of their counts (Kang et al. 2020, Eq. 1 with q = 1/2)."""
    return weighted(labels, generator, power=0.5)


def weighted(labels: Labels, generator: Generator, *, power: float) -> Int[Tensor, " examples"]:
    """Draws with replacement, in which a class of n examples has a probability proportional to n^power."""
    counts = torch.bincount(labels).double()
    weight = counts[labels] ** (power - 1)
    return torch.multinomial(weight, len(labels), replacement=True, generator=generator)


def dual(labels: Labels, generator: Generator) -> Int[Tensor, "2 examples"]:
    """A class-balanced and an instance-balanced order side by side (LPT section 4.2)."""
    return torch.stack([balanced(labels, generator), shuffled(labels, generator)])


def dual_as_released(labels: Labels, generator: Generator) -> Int[Tensor, "2 examples"]:
    """LPT's code: classes in turn with four images of each, and beside them draws with replacement."""
    anywhere = torch.randint(0, len(labels), (len(labels),), generator=generator)
    return torch.stack([class_aware(labels, generator), anywhere])


def class_aware(labels: Labels, generator: Generator, *, images: int = 4) -> Int[Tensor, " examples"]:
    """Classes in shuffled rounds, with `images` of each in a row; a small class repeats its images."""
    classes = labels.unique()
    rounds = -(-len(labels) // (images * len(classes)))
    turns = torch.cat([torch.randperm(len(classes), generator=generator) for _ in range(rounds)])
    order = torch.empty(len(turns), images, dtype=torch.long)
    for number, label in enumerate(classes):
        members = (labels == label).nonzero().squeeze(1)
        wanted = rounds * images
        drawn = [
            members[torch.randperm(len(members), generator=generator)]
            for _ in range(-(-wanted // len(members)))
        ]
        order[turns == number] = torch.cat(drawn)[:wanted].view(rounds, images)
    return order.flatten()[: len(labels)]


def bucketed(
    order: Int[Tensor, " examples"],
    lengths: Int[Tensor, " examples"],
    batch: int,
    generator: Generator,
    window: int,
    sets: Int[Tensor, " examples"] | None = None,
) -> list[Tensor]:
    """Cut an epoch into batches of similar length, to pad less; with `sets`, each of examples of one set.

    All batches are shuffled together, so a set has its share of the steps (P-Tuning v2 does not say how sets
    take turns). Examples are sorted by length within windows of `window` batches, and then the batches are
    shuffled. A window of 1 keeps the order of the examples. Larger windows pad less. But if length depends on
    the class (earnings reports in R52 are short), a batch is then no random sample.
    """
    batches = []
    for own in of_sets(order, sets):
        for part in own.split(batch * window):
            part = part[torch.argsort(lengths[part], stable=True)]
            batches += part.split(batch)
    return [batches[i] for i in torch.randperm(len(batches), generator=generator)]


def of_sets(order: Int[Tensor, " examples"], sets: Int[Tensor, " examples"] | None) -> list[Tensor]:
    """The examples of each set, in order; without sets all of them."""
    return [order] if sets is None else [order[sets[order] == number] for number in sets.unique()]


SAMPLERS = {
    "shuffled": shuffled,
    "balanced": balanced,
    "square_root": square_root,
    "dual": dual,
    "dual_as_released": dual_as_released,
}
