"""The number formats that a run may compute in."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from tailprompt.errors import named


def set_precision(precision: str) -> None:
    """Set how exactly a GPU multiplies float32 matrices from now on."""
    torch.set_float32_matmul_precision(named(PRECISIONS, precision, "precision"))


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """Compute in bfloat16 inside where it is asked for and the GPU has it, else change nothing."""
    named(PRECISIONS, precision, "precision")
    if precision == "bfloat16" and device.type == "cuda" and torch.cuda.is_bf16_supported():
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return nullcontext()


PRECISIONS = {"float32": "highest", "tf32": "high", "bfloat16": "high"}
"""Name -> how exactly a GPU multiplies float32 matrices; a CPU always does so in full."""
