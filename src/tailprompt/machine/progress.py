"""How a job tells where it is: a bar in a terminal, and elsewhere a line every few minutes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from tqdm import tqdm

FIRST, PAUSE = 10.0, 180.0  # seconds before the first line; between two lines, after some that come sooner

Show = Callable[..., None]  # number done, latest scores


@contextmanager
def shown(label: str, *, total: int | None, done: int = 0, unit: str = "step") -> Iterator[Show]:
    """Yield a function that takes the number of units that are done, and perhaps the latest scores.

    total: all units, None if nobody knows. done: those of an earlier process.
    """
    if not sys.stderr.isatty():
        yield lines(label, total=total, done=done, unit=unit)
        return
    large = unit == "byte"
    with tqdm(total=total, initial=done, desc=label, unit=unit, unit_scale=large, mininterval=2) as bar:
        yield partial(moved, bar)


def moved(bar: tqdm, done: int, scores: dict[str, float] | None = None) -> None:
    """Move a bar."""
    if scores:
        bar.set_postfix(formatted(scores), refresh=False)
    bar.update(done - bar.n)


def lines(label: str, *, total: int | None, done: int = 0, unit: str = "step") -> Show:
    """A function that prints a line at most every PAUSE seconds, with the measured speed."""
    begun = said = time.monotonic()
    before, pause = done, FIRST

    def show(done: int, scores: dict[str, float] | None = None) -> None:
        nonlocal said, pause
        now = time.monotonic()
        if now - said < pause or done == before:
            return
        said, pause = now, min(2 * pause, PAUSE)
        speed = (done - before) / (now - begun)
        of = f" of {total:,}" if total else ""
        about = "".join(f", {name} {value}" for name, value in formatted(scores or {}).items())
        left = f", at most {(total - done) / speed / 60:,.0f} minutes left" if total else ""
        say(f"{label}: {done:,}{of} {unit}s{about}; {speed:.4g} {unit}s a second{left}")

    return show


def formatted(scores: dict[str, float]) -> dict[str, str]:
    """Scores with three decimals."""
    return {name: f"{value:.3f}" for name, value in scores.items()}


def say(text: str) -> None:
    """Print a line at once, which a bar does not break; a log on a full disk does not end the job."""
    with suppress(OSError):
        tqdm.write(text)
        sys.stdout.flush()
