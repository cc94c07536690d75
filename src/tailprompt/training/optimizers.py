"""Optimizers. Each function takes the trainable tensors, the learning rate and its own hyper-parameters.

A rate that is a tensor can be changed between the replays of a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor
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


OPTIMIZERS = {"adamw": adamw, "sgd": sgd}
