"""Examples in batches: in the order of a sampler to train on, and of like length to predict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tailprompt.inputs.encode import Examples
from tailprompt.inputs.images import Images
from tailprompt.training.loop import Batches, Loss
from tailprompt.training.precision import autocast
from tailprompt.training.samplers import bucketed

Rows = Int[Tensor, " batch"]  # example indices


def sampled(
    examples: Examples | Images,
    sampler: Callable,
    *,
    batch: int,
    bucket: int,
    seed: int,
    items: Callable[[Rows], int] = len,
) -> Batches:
    """Batches of (inputs, labels, branch) in the order of a sampler; dual sampling has two branches a step.

    bucket: batches sorted by length together; 1 is a plain shuffle. items: what a batch's losses are divided
    by; the number of examples, where each has one label.
    """
    per_epoch = -(-len(examples) // batch)

    @lru_cache(1)
    def epoch_rows(epoch: int) -> list[list[Rows]]:
        return epoch_batches(examples, sampler, batch=batch, bucket=bucket, seed=seed, epoch=epoch)

    def rows_at(step: int) -> list[Rows]:
        epoch, index = divmod(step, per_epoch)
        return epoch_rows(epoch)[index]

    def parts(step: int, micro: int) -> Iterator[tuple[tuple, int]]:
        for rows in rows_at(step + 1) if (step + 1) % per_epoch else ():
            examples.expect(rows)
        for branch, rows in enumerate(rows_at(step)):
            for part in rows.split(micro):
                yield (*examples.batch(part), branch), items(rows)

    def names(step: int) -> list[str]:
        return [examples.names[row] for rows in rows_at(step) for row in rows.tolist()]

    return Batches(per_epoch, batch, parts, names)


def epoch_batches(
    examples: Examples | Images, sampler: Callable, *, batch: int, bucket: int, seed: int, epoch: int
) -> list[list[Rows]]:
    """The rows of each branch of each step of an epoch; seed and epoch alone decide."""
    generator = Generator().manual_seed(seed * 1_000_003 + epoch)
    orders = sampler(examples.labels.cpu(), generator)
    branches = orders if orders.dim() == 2 else orders[None]
    cut = [bucketed(order, examples.lengths, batch, generator, bucket) for order in branches]
    return [list(rows) for rows in zip(*cut, strict=True)]


def of_outputs(cost: Callable, *, device: torch.device, precision: str) -> Loss:
    """The loop's loss of a batch: the model computes in `precision`, the cost of its outputs does not.

    cost: (outputs of the model, labels, branch, share of the epochs that are over) -> loss per item.
    """
    cast = autocast(device, precision)

    def loss(model: nn.Module, batch: tuple, elapsed: float) -> Float[Tensor, " items"]:
        inputs, labels, branch = batch
        with cast:
            outputs = model(inputs)
        return cost(outputs, labels, branch, elapsed)

    return loss


@torch.no_grad()
def predict(
    model: nn.Module,
    examples: Examples | Images,
    *,
    tokens: int = 16_384,
    precision: str = "float32",
    apply: Callable | None = None,
) -> Float[Tensor, "examples outputs"]:
    """Logits (or what `apply` makes of a batch) of all examples in their own order, on the CPU in float32.

    Batches hold examples of similar length, about `tokens` tokens each.
    """
    model.eval()
    apply = apply or model
    order = torch.argsort(examples.lengths, descending=True, stable=True)
    outputs, at = [], 0
    while at < len(order):
        size = max(1, tokens // int(examples.lengths[order[at]]))
        inputs, _ = examples.batch(order[at : at + size])
        with autocast(examples.labels.device, precision):
            outputs.append(apply(inputs).float())
        at += size
    gathered = torch.cat(outputs).cpu()
    return torch.empty_like(gathered).index_copy_(0, order, gathered)
