"""A signal that asks a run to end lets the current step finish, so that its state can be saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # a time limit or scancel, ctrl-C, a closed terminal


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
