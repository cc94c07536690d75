"""Optimizers. Each function takes the trainable tensors, the learning rate and its own hyper-parameters.

A rate that is a tensor can be changed between the replays of a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer


def adamw(
    learned: Iterable[Tensor], *, lr: float | Tensor, weight_decay: float, adam_eps: float
) -> Optimizer:
    """AdamW (Loshchilov and Hutter 2019, Algorithm 2); GLEE and PPT train with it."""
    capturable = isinstance(lr, Tensor)
    return AdamW(learned, lr=lr, eps=adam_eps, weight_decay=weight_decay, fused=True, capturable=capturable)


def sgd(learned: Iterable[Tensor], *, lr: float | Tensor, momentum: float, weight_decay: float) -> Optimizer:
    """Stochastic gradient descent with momentum; LPT trains with it."""
    return SGD(learned, lr=lr, momentum=momentum, weight_decay=weight_decay, fused=True)


def gnm(
    learned: Iterable[Tensor], *, lr: float | Tensor, momentum: float, weight_decay: float, rho: float
) -> Optimizer:
    """SGD, whose gradients are taken where `beside` puts the weights."""
    return sgd(learned, lr=lr, momentum=momentum, weight_decay=weight_decay)


@contextmanager
def beside(model: nn.Module, rho: float) -> Iterator[None]:
    """What learns in a model at a random place near by, and afterwards where it was.

    Each number is moved by rho times noise of SD 1/3, at most 1 (code of Li et al. 2024, without the halving
    of the noise in its last epochs): Gaussian neighbourhood minimisation, which needs one gradient a step.
    """
    learned = [value for value in model.parameters() if value.requires_grad]
    before = [value.detach().clone() for value in learned]
    with torch.no_grad():
        for value in learned:
            value.add_(rho * (torch.randn_like(value) / 3).clamp(-1, 1))
    try:
        yield
    finally:
        with torch.no_grad():
            for value, was in zip(learned, before, strict=True):
                value.copy_(was)


@contextmanager
def near(model: nn.Module, told, lower: Callable[[], AbstractContextManager]) -> Iterator[None]:
    """The context of a step's passes: that of `lower`; for GNM beside the weights. told: the optimizer."""
    with beside(model, told.rho) if told.name == "gnm" else nullcontext(), lower():
        yield


OPTIMIZERS = {"adamw": adamw, "sgd": sgd, "gnm": gnm}
