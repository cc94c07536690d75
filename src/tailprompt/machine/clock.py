"""What a piece of work takes: time by the clock, and processor time, which other jobs hardly change."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, and seconds of processors, of all threads together."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


def started() -> Callable[[], Spent]:
    """A function that says what was spent since now."""
    begun, used = time.monotonic(), time.process_time()
    return lambda: Spent(time.monotonic() - begun, time.process_time() - used)
