"""How many CPUs this machine has, and so the threads that a job can be told to take."""

from __future__ import annotations

import argparse
import os

CPUS = os.cpu_count() or 1


def threads(text: str) -> int:
    """The number of threads in an option, for argparse; one that the machine has no CPUs for is refused."""
    number = int(text)
    if not 1 <= number <= CPUS:
        raise argparse.ArgumentTypeError(f"threads are numbers from 1 to {CPUS}, the CPUs of this machine")
    return number
