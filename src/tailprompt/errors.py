"""The one exception that a person can act on, and how a stage shows it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable


class BadInput(ValueError):
    """Something the user gave is wrong; the message is one sentence with the place and what is allowed."""


def named(registry: dict, name: str, kind: str):
    """Entry `name` of `registry`; raises BadInput with the valid names when it is not there."""
    if name not in registry:
        raise BadInput(f"unknown {kind} '{name}'; known: {known(registry)}")
    return registry[name]


def known(names: Iterable[str]) -> str:
    """Names for a message, sorted and separated by commas."""
    return ", ".join(sorted(map(str, names))) or "none"


def few(items: list, shown: int = 5) -> str:
    """The first items, as a message shows them."""
    return ", ".join(map(str, items[:shown])) + (", ..." if len(items) > shown else "")


def stage(main: Callable[[], None]) -> None:
    """Run the `main` of a stage: bad input ends in one line and exit status 2, not in a traceback.

    So does a file that the system does not give. A job that is asked to end removes what is half written.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        main()
    except (BadInput, OSError) as error:
        kind = f"{type(error).__name__}: " if isinstance(error, OSError) else ""
        print(f"error: {kind}{error}", file=sys.stderr)
        raise SystemExit(2) from None
