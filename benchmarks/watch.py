"""How fast a loop goes, seen from outside it, and how fast the machine could multiply."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import nan

import torch


@dataclass
class Watch:
    """Times the steps of a loop, which says after each how many are done, and stops when told to.

    seconds: of measuring, at the least. first: seconds from the beginning to the end of the first step.
    rate: steps a second after the first `warm`, over whole periods, because batches differ in length within
    a period. Only where a period ends does the host wait for a GPU.
    """

    device: torch.device
    seconds: float
    first: float = nan
    rate: float = nan

    def begin(self, *, warm: int, period: int) -> None:
        """Start the time."""
        self.warm, self.period, self.begun = warm, period, self.now()

    def over(self, done: int) -> bool:
        """Whether enough was seen after `done` steps."""
        if done == 1:
            self.first = self.now() - self.begun
        if done == self.warm:
            self.warmed = self.now()
        if done <= self.warm or (done - self.warm) % self.period:
            return False
        spent = self.now() - self.warmed
        self.rate = (done - self.warm) / spent
        return spent >= self.seconds

    def now(self) -> float:
        """The time at which all that was launched is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


@contextmanager
def deterministic() -> Iterator[None]:
    """Compute with the kernels of the workflow's runs, which repeat to the bit and are a little slower."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def matmul_rate(device: torch.device, *, seconds: float = 0.5) -> float:
    """FLOPs a second of a large matrix product, of bfloat16 on a GPU and float32 on a CPU."""
    size, dtype = (8192, torch.bfloat16) if device.type == "cuda" else (512, torch.float32)
    matrix, watch = torch.randn(size, size, device=device, dtype=dtype), Watch(device, seconds)
    watch.begin(warm=5, period=10)
    done = 0
    while not watch.over(done):
        torch.mm(matrix, matrix)
        done += 1
    return watch.rate * 2 * size**3
