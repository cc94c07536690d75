"""The one exception that a user can act on, and how a stage reports it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class BadInput(ValueError):
    """The user's input is wrong. The message is one sentence that says where, and what is allowed."""


def named(registry: dict, name: str, kind: str):
    """Entry `name` of `registry`; raises BadInput with the valid names if there is none."""
    if not isinstance(name, str) or name not in registry:
        raise BadInput(f"unknown {kind} '{name}'; known: {known(registry)}")
    return registry[name]


def known(names: Iterable[str]) -> str:
    """Names for a message, sorted and separated by commas; `none` if there are none."""
    return ", ".join(sorted(map(str, names))) or "none"


def few(items: list, shown: int = 5) -> str:
    """The first items, as a message shows them."""
    return ", ".join(map(str, items[:shown])) + (", ..." if len(items) > shown else "")


@contextmanager
def refused_as(kind: type[BaseException]) -> Iterator[None]:
    """Bad input, and a file that the system does not give or take, as an exception of another kind."""
    try:
        yield
    except (BadInput, OSError) as error:
        raise kind(str(error)) from None


def stage(main: Callable[[], None]) -> None:
    """Run the `main` of a stage. Bad input ends in one line and exit status 2 instead of a traceback.

    So does an OSError. SIGTERM raises SystemExit, so that the stage removes its half-written files.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        main()
    except (BadInput, OSError) as error:
        kind = f"{type(error).__name__}: " if isinstance(error, OSError) else ""
        print(f"error: {kind}{error}", file=sys.stderr)
        raise SystemExit(2) from None
