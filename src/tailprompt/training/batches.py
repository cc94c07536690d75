"""Batches of examples: in the order of a sampler for training, and of similar length for prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tailprompt.inputs.examples import Split
from tailprompt.training.loop import Batches, Loss
from tailprompt.training.precision import autocast
from tailprompt.training.samplers import bucketed

Rows = Int[Tensor, " batch"]  # example indices


def sampled(
    examples: Split,
    sampler: Callable,
    *,
    batch: int,
    bucket: int,
    seed: int,
    items: Callable[[Rows], int] = len,
) -> Batches:
    """Batches of (inputs, labels, branch) in the order of a sampler; dual sampling has two branches a step.

    bucket: how many batches are sorted by length together; 1 is a plain shuffle. items: rows -> the number
    that divides the sum of their losses, which is the number of examples if each has one label.
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
    examples: Split, sampler: Callable, *, batch: int, bucket: int, seed: int, epoch: int
) -> list[list[Rows]]:
    """The rows of each branch of each step in an epoch. They depend on the seed and the epoch only."""
    generator = Generator().manual_seed(seed * 1_000_003 + epoch)
    orders = sampler(examples.labels.cpu(), generator)
    branches = orders if orders.dim() == 2 else orders[None]
    cut = [bucketed(order, examples.lengths, batch, generator, bucket) for order in branches]
    return [list(rows) for rows in zip(*cut, strict=True)]


def of_outputs(cost: Callable, *, device: torch.device, precision: str) -> Loss:
    """The loss of a batch for the training loop: the model computes in `precision`, the cost in full.

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
    examples: Split,
    *,
    tokens: int = 16_384,
    precision: str = "float32",
    apply: Callable | None = None,
) -> Float[Tensor, "examples *outputs"]:
    """Logits (or what `apply` returns for a batch) of all examples in order, on the CPU in float32.

    A batch holds examples of similar length, about `tokens` tokens in all.
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
