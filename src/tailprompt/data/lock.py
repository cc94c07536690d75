"""What was found out once and holds from then on, in config/lock.json: digests by address, commits by `hub:`.

The file outlives results/ and is of all scales, as the downloads are.
"""

from __future__ import annotations

from pathlib import Path

from tailprompt import files

LOCK = Path("config/lock.json")


def locked(lock: Path) -> dict[str, str]:
    """What the lock file holds."""
    return files.read_json(lock) if Path(lock).is_file() else {}


def record(lock: Path, name: str, value: str) -> None:
    """Add one entry to the lock file."""
    files.write_json(lock, dict(sorted({**locked(lock), name: value}.items())))
