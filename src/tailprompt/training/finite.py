"""What training that has diverged is stopped with."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from tailprompt.errors import BadInput


def not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """The name of the first tensor that is not finite everywhere, or None."""
    whole = torch.stack([value.detach().isfinite().all() for value in tensors.values()]).tolist()
    return next((name for name, finite in zip(tensors, whole, strict=True) if not finite), None)


def diverged(value: float, tensor: str | None, names: list[str], step: int) -> BadInput:
    """The error for a step whose loss or gradient is not finite. tensor: the first of these gradients."""
    finite = math.isfinite(value)
    what = f"the gradient of {tensor} is not finite" if finite else f"the loss is {value}"
    return BadInput(
        f"training stopped at step {step + 1}: {what} (first tensor: {tensor or 'loss'}); "
        f"examples of the batch: {', '.join(names)}; lower lr, or look at these examples"
    )
