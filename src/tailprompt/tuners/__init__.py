"""What is trained besides the head. A tuner says which parameters of the body learn."""

from __future__ import annotations

from torch import nn


def full(body: nn.Module) -> None:
    """Every parameter of the body learns."""
    body.requires_grad_(True)


def frozen(body: nn.Module) -> None:
    """None does: only the head learns (a linear probe)."""
    body.requires_grad_(False)


TUNERS = {"full": full, "frozen": frozen}
