"""The one exception that a user can act on, and how a stage reports it."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

IRREGULAR = {"are": "is", "have": "has", "do": "does"}  # verbs
NO_RIGHT = "give this user the right to it (see ls -ld and lsattr), or take another place"
NO_FOLDER = "move the file away that is where a folder is wanted, or take another place"
TO_DO = {  # where the system refuses a file
    errno.EACCES: NO_RIGHT,
    errno.EPERM: NO_RIGHT,
    errno.EROFS: "take a place on another disk",
    errno.EISDIR: "move the folder away that is where a file is wanted, or take another place",
    errno.ENOTDIR: NO_FOLDER,
    errno.EEXIST: NO_FOLDER,
}


class BadInput(ValueError):
    """The user's input is wrong. The message is one sentence that says where, and what is allowed."""


class Stopped(SystemExit):
    """A signal ended the process. `text` says what is kept; the exit status is that of the signal."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(128 + number)
        self.text = f"stopped by {signal.Signals(number).name}{text}"


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


def brief(name: str, most: int = 60) -> str:
    """A name for a message or a page: the first characters of a long one."""
    return name if len(name) <= most else f"{name[: most - 1]}\u2026"


def counted(number: int, thing: str, verb: str = "") -> str:
    """A number with its noun, and a verb that is given in the plural: 1 class, 2 classes, 1,200 runs take."""
    if number == 1:
        first, *rest = verb.split(" ")
        one = IRREGULAR.get(first, f"{first}s" if first else "")
        return " ".join(filter(None, (f"{number:,} {thing}", one, *rest)))
    many = f"{thing}es" if thing.endswith(("s", "x", "ch", "sh")) else f"{thing}s"
    return f"{number:,} {many} {verb}".rstrip()


@contextmanager
def refused_as(kind: type[BaseException]) -> Iterator[None]:
    """Bad input, and a file that the system does not give or take, as an exception of another kind."""
    try:
        yield
    except (BadInput, OSError) as error:
        raise kind(sentence(error)) from None


def stage(main: Callable[[], None]) -> None:
    """Run the `main` of a stage. What the user can act on ends in one line in the place of a traceback.

    That is bad input, an OSError and too little memory, with exit status 2, and SIGTERM, which raises
    Stopped as SIGINT raises KeyboardInterrupt, so that the stage removes its half-written files.
    """
    signal.signal(signal.SIGTERM, terminated)
    try:
        with suppress(KeyboardInterrupt):
            return main()
        terminated(signal.SIGINT)
    except Stopped as end:
        tell(end.text)
        raise SystemExit(end.code) from None
    except Exception as error:
        if not (said := sentence(error)):
            raise
        tell(f"error: {said}")
        raise SystemExit(2) from None


def tell(text: str) -> None:
    """Print a line to standard error, unless the log that it goes to is on a full disk."""
    with suppress(OSError):
        print(text, file=sys.stderr)


def terminated(number: int, _=None) -> None:
    """End a stage that has nothing to save."""
    raise Stopped(number, "; nothing is left half-written, and the same command begins again")


def why(error: OSError) -> str:
    """Why the system gives or takes no file."""
    if isinstance(error, FileExistsError) and os.path.islink(name := str(error.filename)):
        return f"a link to {os.readlink(name)}, which is not there"
    return error.strerror or str(error)


def to_do(error: OSError) -> str:
    """What to do then, as the end of a sentence; empty where the reason says it."""
    linked = error.filename is not None and os.path.islink(error.filename)
    return f"; {TO_DO[error.errno]}" if error.errno in TO_DO and not linked else ""


def sentence(error: Exception) -> str | None:
    """What a user can act on in an exception; None for a fault of ours."""
    if isinstance(error, BadInput):
        return str(error)
    if isinstance(error, OSError):
        name = error.filename2 or error.filename  # of two the one that a file was to become
        return f"{name} cannot be read or written ({why(error)}){to_do(error)}" if name else why(error)
    text = " ".join(str(error).split())
    if type(error).__name__ == "OutOfMemoryError":  # torch's, which is not imported here
        return (
            f"the GPU has too little memory ({text}); lower batch or max_length, or slots, if jobs share it"
        )
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in text:
        reason = text or "MemoryError"
        return f"this machine has too little memory ({reason}); give the job more (mem_mb), or lower batch"
    return None
