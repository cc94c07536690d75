"""Optimizers of pre-training."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer


def adamw(learned: Iterable[Tensor], *, lr: float | Tensor, weight_decay: float) -> Optimizer:
    """AdamW with weight decay for matrices only, not for vectors (biases and the gains of norms)."""
    tensors = list(learned)
    groups = [
        {"params": [value for value in tensors if value.ndim > 1], "weight_decay": weight_decay},
        {"params": [value for value in tensors if value.ndim < 2], "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=lr, betas=(0.9, 0.98), eps=1e-6, fused=True, capturable=isinstance(lr, Tensor))


def relative(learned: Iterable[Tensor], *, lr: float | Tensor, weight_decay: float) -> Optimizer:
    """AdamW whose steps are relative to a tensor's size, as Adafactor's (Shazeer and Stern 2018, section 8).

    The size is the root of the mean square, at least 0.001. T5's weights need it: their sizes are from 0.006
    (queries) to 1 (embeddings). torch's Adafactor cannot be captured as a CUDA graph.
    """
    tensors = list(learned)
    optimizer, before = adamw(tensors, lr=lr, weight_decay=weight_decay), []

    def keep(*_) -> None:
        before[:] = [value.detach().clone() for value in tensors]

    @torch.no_grad()
    def shorten(*_) -> None:
        for value, old in zip(tensors, before, strict=True):
            value.copy_(old.lerp(value, old.square().mean().sqrt().clamp(min=1e-3)))

    optimizer.register_step_pre_hook(keep)
    optimizer.register_step_post_hook(shorten)
    return optimizer


OPTIMIZERS = {"adamw": adamw, "relative": relative}
