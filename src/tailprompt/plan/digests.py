"""SHA-256 digests of files, computed again only for a file that changed: a plan reads no weights twice.

`results/digests.json` holds the digest of each large file with the size and the times that the file had.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.files import read_json, sha256, write_json

KEPT = Path("results/digests.json")
LARGE = 10**6  # bytes; a smaller file is read faster than it is looked up
QUIET = 2 * 10**9  # nanoseconds: a file that changed just now may change again and keep its times


def digests(files: Iterable[Path], root: Path = Path(".")) -> list[str]:
    """The digest of each file. root: the project's folder, which keeps those of large files."""
    return [digest_of(file, root) for file in files]


def digest_of(file: Path, root: Path = Path(".")) -> str:
    """The digest of one file."""
    status = file.stat()
    if status.st_size < LARGE:
        return sha256(file)
    # a file that is moved here keeps its modification time, and the other tells of the move
    state = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    name, kept = str(file.absolute()), root / KEPT
    known = noted(kept)
    if known.get(name, [])[:-1] != state:
        digest = sha256(file)
        if time.time_ns() - max(state[1:]) < QUIET:
            return digest
        known[name] = [*state, digest]
        write_json(kept, {**read(kept), **known})
    return known[name][-1]


@cache
def noted(kept: Path) -> dict[str, list]:
    """The digests that a project keeps, with size and times, by absolute path."""
    return read(kept)


def read(kept: Path) -> dict[str, list]:
    """The content of the file; nothing if it is missing or damaged, as it is made anew then."""
    try:
        found = read_json(kept) if kept.is_file() else {}
    except BadInput:
        return {}
    return {name: one for name, one in found.items() if isinstance(one, list) and len(one) == 4}
