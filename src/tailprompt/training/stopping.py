"""A signal that asks a run to end lets the current step finish, so that its state can be saved."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from tailprompt.errors import BadInput, Stopped
from tailprompt.training.finite import mean
from tailprompt.training.state import Learner, Progress, save

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # a time limit or scancel, ctrl-C, a closed terminal
SAVE_SECONDS = 120.0  # between two saves of the state
SHARE = 0.05  # of the time, at the most, that goes into saving it


@contextmanager
def noticed() -> Iterator[list[signal.Signals]]:
    """Yield a list to which the first of SIGNALS is added when it comes. The second acts as it did before.

    A signal that this process ignores stays ignored.
    """
    came: list[signal.Signals] = []
    if threading.current_thread() is not threading.main_thread():  # only there can signals be handled
        yield came
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def notice(number: int, _) -> None:
        came.append(signal.Signals(number))
        restore()

    for number in before:
        signal.signal(number, notice)
    try:
        yield came
    finally:
        restore()


def keeper(
    state: Path | None, key: str, learner: Learner, names: Callable[[int], list[str]]
) -> Callable[..., None]:
    """A function that saves a progress to `state` now and then, or now; what is not finite is not saved."""
    saved, pause = time.monotonic(), SAVE_SECONDS

    def keep(progress: Progress, *, now: bool) -> None:
        nonlocal saved, pause
        begun = time.monotonic()
        if state is not None and (now or begun - saved >= pause):
            if progress.records:
                mean(learner, progress, names)
            save(state, key, progress, learner)
            saved = time.monotonic()
            pause = max(SAVE_SECONDS, (saved - begun) / SHARE)

    return keep


def stopped(number: int, progress: Progress, total: int, state: Path) -> Stopped:
    """The end of a run that a signal asked to end."""
    at = f"step {progress.step:,} of {total:,}"
    return Stopped(number, f" after {at}; {state} holds all of them, and the same command goes on from there")


@contextmanager
def kept_where_memory_ends(
    keep: Callable[..., None], progress: Progress, total: int, state: Path | None
) -> Iterator[None]:
    """Save the state where an evaluation finds no memory on the GPU, and say what helps."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        keep(progress, now=True)
        text = " ".join(str(error).split())
        raise BadInput(
            f"the GPU has too little memory to evaluate after step {progress.step:,} of {total:,} ({text}); "
            f"{f'{state} holds all of them, so ' if state else ''}run the same command again where fewer "
            "jobs share the GPU (slots), or lower max_length, or take a smaller backbone"
        ) from None
