"""Optimizers. Each function takes the trainable tensors, the learning rate and its own hyper-parameters."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor
from torch.optim import SGD, AdamW, Optimizer


def adamw(learned: Iterable[Tensor], *, lr: float, weight_decay: float, adam_eps: float) -> Optimizer:
    """AdamW (Loshchilov and Hutter 2019, Algorithm 2); GLEE and PPT train with it."""
    return AdamW(learned, lr=lr, eps=adam_eps, weight_decay=weight_decay, fused=True)


def sgd(learned: Iterable[Tensor], *, lr: float, momentum: float, weight_decay: float) -> Optimizer:
    """Stochastic gradient descent with momentum; LPT trains with it."""
    return SGD(learned, lr=lr, momentum=momentum, weight_decay=weight_decay, fused=True)


OPTIMIZERS = {"adamw": adamw, "sgd": sgd}
