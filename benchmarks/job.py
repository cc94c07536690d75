"""What is trained, as every system takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer

from tailprompt.inputs.examples import Split
from tailprompt.model.compose import Model


@dataclass(frozen=True)
class Job:
    """A network, its data and its optimizer.

    ours, plain, theirs: make it, always with the same weights: as tailprompt composes it, as a module that
    maps inputs to outputs in the obvious way, and as transformers has it. examples: device -> the data there.
    rows, collate: the data as Trainer takes them. bucket: batches sorted by length together. period: steps
    after which the lengths of batches repeat. width: to which the obvious way pads. clip: largest norm of the
    gradient; 0 does not clip. flops: of an example, the useful ones. unit: what is counted, `steps` or
    `images`. repeats: the body makes the same vectors in every pass, so that ours makes them once.
    """

    ours: Callable[[], Model]
    examples: Callable[[torch.device], Split]
    optimizer: Callable[..., Optimizer]
    lr: float
    clip: float
    batch: int
    period: int
    flops: float
    unit: str
    bucket: int = 1
    width: int = 0
    repeats: bool = False
    plain: Callable[[], nn.Module] | None = None
    theirs: Callable[[], nn.Module] | None = None
    rows: Sequence[dict] = ()
    collate: Callable[[list[dict]], dict[str, Tensor]] | None = None


def cost(outputs: Tensor | tuple[Tensor, Tensor], labels: Tensor, *_) -> Tensor:
    """The loss of each example: cross-entropy, and what the model adds (LPT Eq. 5)."""
    logits, added = outputs if isinstance(outputs, tuple) else (outputs, 0.0)
    return cross_entropy(logits.float(), labels, reduction="none") + added


def size(*modules: nn.Module) -> int:
    """The number of parameters."""
    return sum(value.numel() for module in modules for value in module.parameters())
