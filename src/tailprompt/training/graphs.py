"""CUDA graphs: work on a GPU that is launched as a whole, because one CPU core cannot launch it fast enough.

What is replayed is what was captured: the same kernels on the same memory, and dropout draws anew. So work
can be captured if its shapes are known and it never looks at a number on the GPU.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from tailprompt.machine.progress import say

Work = Callable[[Sequence[Tensor]], Tensor]  # tensors on the GPU -> a tensor there


class Graphs:
    """Work that is done once as it is written, captured the second time, and replayed from then on.

    It must be called in `own_stream`. On a CPU, and where `capture` is false, work is done as it is written.
    If something cannot be captured, which is printed, the same holds of all work from then on.
    """

    def __init__(self, device: torch.device, *, capture: bool = True):
        self.captures = capture and device.type == "cuda"
        self.forget()

    def forget(self) -> None:
        """Give back the memory of all graphs."""
        self.met: set[Hashable] = set()
        self.kept: dict[Hashable, tuple[list[Tensor], torch.cuda.CUDAGraph, Tensor]] = {}
        self.pool = torch.cuda.graph_pool_handle() if self.captures else None

    def __call__(self, key: Hashable, tensors: Sequence[Tensor], work: Work) -> Tensor:
        """What `work` returns for `tensors`. Calls of equal `key` differ in the values of `tensors` alone."""
        if self.captures and key in self.met and key not in self.kept:
            self.capture(key, tensors, work)
        if key not in self.kept:
            self.met.add(key)
            return work(tensors)
        inputs, graph, output = self.kept[key]
        for into, tensor in zip(inputs, tensors, strict=True):
            into.copy_(tensor, non_blocking=True)
        graph.replay()
        return output.clone()

    def capture(self, key: Hashable, tensors: Sequence[Tensor], work: Work) -> None:
        """Keep a graph of `work`, which is launched but not done."""
        inputs, graph = [tensor.clone() for tensor in tensors], torch.cuda.CUDAGraph()
        draws = torch.cuda.default_generators[torch.cuda.current_device()]
        before = draws.clone_state()
        try:
            with recording(graph, self.pool):
                output = work(inputs)
        except RuntimeError as error:
            draws.graphsafe_set_state(before)  # the other one would go on waiting for a capture to end
            self.forget()
            self.captures, first = False, str(error).partition("\n")[0]
            say(f"not captured as a CUDA graph, which would be faster: {first}")
        else:
            self.kept[key] = inputs, graph, output


@contextmanager
def recording(graph: torch.cuda.CUDAGraph, pool: tuple[int, int] | None) -> Iterator[None]:
    """Capture what is launched. A thread that reads ahead may go on; garbage is not collected."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()  # a graph has memory of its own
    collects = gc.isenabled()
    gc.disable()
    graph.capture_begin(pool=pool, capture_error_mode="thread_local")
    try:
        yield
    finally:
        if collects:
            gc.enable()
        graph.capture_end()


@contextmanager
def own_stream(device: torch.device) -> Iterator[None]:
    """Launch in a stream of its own on a GPU, as capturing needs."""
    if device.type != "cuda":
        yield
        return
    before, own = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    own.wait_stream(before)
    with torch.cuda.stream(own):
        yield
    before.wait_stream(own)
