"""Tensors written to a safetensors file, atomically."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from tailprompt.errors import BadInput
from tailprompt.files import room, whole


def write_tensors(
    path: str | Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write tensors by name; raises BadInput if one is not finite, or they cannot be written."""
    if broken := next((name for name, value in tensors.items() if not value.isfinite().all()), None):
        raise BadInput(f"{path} is not written: {broken} is not finite")
    with whole(path) as temporary:
        try:
            save_file(tensors, temporary, metadata)
        except SafetensorError as error:
            size = sum(tensor.nbytes for tensor in tensors.values())
            reason = f"{error}; it takes {size:,} bytes, and {room(path):,} are free"
            raise BadInput(f"{path} cannot be written ({reason})") from None
