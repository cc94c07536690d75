"""The number formats in which a run may compute."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from tailprompt.errors import named


def set_precision(precision: str) -> None:
    """Set the precision in which a GPU multiplies float32 matrices from now on."""
    torch.set_float32_matmul_precision(named(PRECISIONS, precision, "precision"))


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """A context that computes in bfloat16 if `precision` says so and the GPU supports it."""
    named(PRECISIONS, precision, "precision")
    if precision == "bfloat16" and device.type == "cuda" and torch.cuda.is_bf16_supported():
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return nullcontext()


PRECISIONS = {"float32": "highest", "tf32": "high", "bfloat16": "high"}
"""Name -> torch's precision for float32 matrix products on a GPU; a CPU always has full precision."""
