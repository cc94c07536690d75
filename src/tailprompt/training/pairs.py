"""Training on pairs: two examples of one class are drawn together, two of two classes apart (SetFit)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor
from torch.nn import functional as F

from tailprompt.errors import BadInput
from tailprompt.inputs.examples import Split
from tailprompt.model.compose import Model
from tailprompt.training.loop import Batches, Part

Pairs = Int[Tensor, "pairs 2"]
SHAPE = 16  # tokens by whose multiples a GPU pads, so that few graphs are captured


def paired(examples: Split, *, pairs: int, steps: int, seed: int) -> Batches:
    """Batches of as many pairs a step, of which every other one is of one class; an epoch is all steps.

    A batch is (inputs of the first and then of the second examples, whether each pair is of one class).
    """
    labels, device = examples.labels.cpu(), examples.labels.device
    same = torch.arange(pairs, device=device) % 2 == 0
    one, two = of_one_class(labels), of_two_classes(labels)

    def drawn(step: int) -> Pairs:
        generator = Generator().manual_seed(seed * 1_000_003 + step)
        chosen = torch.empty(pairs, 2, dtype=torch.long)
        chosen[0::2], chosen[1::2] = (kind(-(-pairs // 2), generator) for kind in (one, two))
        return chosen

    def parts(step: int, micro: int) -> Iterator[Part]:
        for rows, alike in zip(drawn(step).split(max(1, micro)), same.split(max(1, micro)), strict=True):
            flat = rows.T.flatten()
            width = examples.width(flat)
            width = -(-width // SHAPE) * SHAPE if device.type == "cuda" else width
            staged = (*examples.staged(flat, flat.to(device)), alike)
            yield Part(staged, partial(batch, examples, width), pairs, (len(rows), width))

    def names(step: int) -> list[str]:
        return [examples.names[row] for row in drawn(step).flatten().tolist()]

    return Batches(steps, pairs, parts, names)


def batch(examples: Split, width: int, *staged: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """The inputs of both sides of pairs, and whether each pair is of one class."""
    *staged, alike = staged
    return examples.made(*staged, width=width)[0], alike


def of_one_class(labels: Int[Tensor, " examples"]):
    """Draws from all pairs of two examples of one class alike; of an example with itself if there are none.

    The function takes how many, and a generator.
    """
    members, counts = by_class(labels)
    starts = counts.cumsum(0) - counts
    weights = (counts * (counts - 1)).double()
    alone = not weights.any()
    weights = counts.double() if alone else weights

    def drawn(number: int, generator: Generator) -> Pairs:
        classes = torch.multinomial(weights, number, replacement=True, generator=generator)
        sizes = counts[classes]
        first = (torch.rand(number, generator=generator) * sizes).long()
        shift = 1 + (torch.rand(number, generator=generator) * (sizes - 1)).long()
        second = first if alone else (first + shift) % sizes
        return members[starts[classes][:, None] + torch.stack([first, second], dim=1)]

    return drawn


def of_two_classes(labels: Int[Tensor, " examples"]):
    """Draws from all pairs of two examples of different classes alike. Raises BadInput for a single class."""
    members, counts = by_class(labels)
    total, ends = len(labels), counts.cumsum(0)
    if len(counts) < 2:
        raise BadInput("training on pairs needs training rows of two classes at least; add some")
    weights = (counts * (total - counts)).double()

    def drawn(number: int, generator: Generator) -> Pairs:
        classes = torch.multinomial(weights, number, replacement=True, generator=generator)
        sizes, end = counts[classes], ends[classes]
        first = end - sizes + (torch.rand(number, generator=generator) * sizes).long()
        other = (end + (torch.rand(number, generator=generator) * (total - sizes)).long()) % total
        return members[torch.stack([first, other], dim=1)]

    return drawn


def by_class(labels: Int[Tensor, " examples"]) -> tuple[Int[Tensor, " examples"], Int[Tensor, " classes"]]:
    """The examples in the order of their classes, and how many each class has that has any."""
    return labels.argsort(stable=True), labels.unique(return_counts=True)[1]


def apart(model: Model, batch: tuple, elapsed: Tensor) -> Float[Tensor, " pairs"]:
    """How far, squared, a pair's cosine is from 1, or from 0 if it is of two classes (SetFit, section 3)."""
    inputs, alike = batch
    first, second = model.features(inputs).chunk(2)
    return (F.cosine_similarity(first, second) - alike.float()) ** 2
