"""Files that are of the future by the clock, as after it was set back."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from pathlib import Path

from tailprompt.errors import BadInput
from tailprompt.plan.held import LOCK

MINUTE = 60  # seconds, by which the clocks of two file systems may differ


def check_times(files: Iterable[Path], results: Path) -> None:
    """Raise BadInput if a file is of the future: Snakemake deletes what a job makes of it, as it is older."""
    clock = results / LOCK
    results.mkdir(parents=True, exist_ok=True)
    clock.touch()  # asks the file system for the time, which may be that of a server
    now = clock.stat().st_mtime
    if future := [file for file in files if file.exists() and file.stat().st_mtime > now + MINUTE]:
        place = f"{results}/" if (first := min(future)).is_relative_to(results) else str(first)
        raise BadInput(
            f"{first} is of the future by the clock ({time.ctime(now)}), and Snakemake would delete what is "
            f"made of it; set the clock, or run: find {shlex.quote(place)} -newermt now -exec touch {{}} +"
        )
