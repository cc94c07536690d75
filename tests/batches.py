"""A batch of examples as training and prediction make it."""

from __future__ import annotations

from torch import Tensor


def batch_of(examples, rows: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """The inputs of these rows, and their labels."""
    there = rows.to(examples.labels.device)
    return examples.made(*examples.staged(rows, there), width=examples.width(rows))
