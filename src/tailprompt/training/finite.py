"""Losses, gradients and tensors that are not finite end a run with the step, the tensor and the examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from tailprompt.errors import BadInput
from tailprompt.training.state import Learner, Progress


def mean(learner: Learner, progress: Progress, names: Callable[[int], list[str]]) -> float:
    """The mean of the losses since the last evaluation.

    names: step -> the ids of its examples. Raises BadInput if a loss, a gradient or a trained tensor is not
    finite.
    """
    seen = torch.stack(progress.records).tolist()
    for number, (value, norm, first) in enumerate(seen, progress.step - len(seen)):
        if not math.isfinite(value + norm):
            tensor = None if math.isfinite(norm) else list(learner.learned)[int(first)]
            raise diverged(value, tensor, names(number), number)
    if broken := not_finite(learner.learned):
        raise BadInput(f"training stopped at step {progress.step}: {broken} is not finite; lower lr")
    return sum(value for value, *_ in seen) / len(seen)


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
