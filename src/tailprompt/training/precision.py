"""The number formats in which a run may compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor, nn

from tailprompt.errors import named

TENSOR_CORES = (8, 0)  # compute capability of the first GPUs that multiply in TF32


def set_precision(precision: str) -> None:
    """Set the precision in which a GPU multiplies float32 matrices from now on."""
    torch.set_float32_matmul_precision(named(PRECISIONS, precision, "precision"))


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """A context that computes in bfloat16 if `precision` says so and the GPU supports it."""
    return torch.autocast("cuda", torch.bfloat16) if halves(device, precision) else nullcontext()


def lowering(model: nn.Module, precision: str, device: torch.device) -> Callable[[], AbstractContextManager]:
    """A context in which a model computes in bfloat16 if `precision` says so and the GPU supports it.

    Each pass sees its parameters rounded, frozen ones as they are now. Parameters that learn stay float32,
    and so do their gradients and what an optimizer keeps of them. What a module's attribute `exact` names,
    parameters or submodules, stays as it is.
    """
    if not halves(device, precision):
        return nullcontext
    frozen = [place[name] for place, name in places(model) if not place[name].requires_grad]
    return partial(rounded, model, {id(value): value.bfloat16() for value in frozen})


def halves(device: torch.device, precision: str) -> bool:
    """Whether a device computes in bfloat16 at this precision."""
    named(PRECISIONS, precision, "precision")
    return precision == "bfloat16" and device.type == "cuda" and torch.cuda.is_bf16_supported()


def computed_in(device: torch.device, precision: str) -> str:
    """The number format in which a device computes at this precision: a CPU, or an old GPU, has float32."""
    if precision == "tf32" and device.type == "cuda" and torch.cuda.get_device_capability() >= TENSOR_CORES:
        return "tf32"
    return "bfloat16" if halves(device, precision) else "float32"


@contextmanager
def rounded(model: nn.Module, frozen: Mapping[int, Tensor] = MappingProxyType({})) -> Iterator[None]:
    """The parameters of a model in bfloat16; what they share they go on sharing. frozen: by id, rounded."""
    before = [(place, name, place[name]) for place, name in places(model)]
    learned = {id(value): value for *_, value in before if id(value) not in frozen}
    lower = {**frozen, **{key: value.bfloat16() for key, value in learned.items()}}
    try:
        for place, name, value in before:
            place[name] = lower[id(value)]
        yield
    finally:
        for place, name, value in before:
            place[name] = value


def places(module: nn.Module) -> list[tuple[dict, str]]:
    """Where the parameters of a module stand that may be rounded."""
    exact = getattr(module, "exact", ())
    own = [(module._parameters, name) for name, value in module._parameters.items() if value is not None]
    below = [place for name, child in module.named_children() if name not in exact for place in places(child)]
    return [(place, name) for place, name in own if name not in exact] + below


PRECISIONS = {"float32": "highest", "tf32": "high", "bfloat16": "highest"}
"""Name -> torch's precision for float32 matrix products on a GPU; a CPU always has full precision."""
