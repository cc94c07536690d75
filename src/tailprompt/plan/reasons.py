"""Why jobs failed, in a sentence each: from the logs that they left, and from Snakemake's own."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from tailprompt.files import room

TAIL = 2**16  # bytes at the end of a log that are read
FULL = 2**20  # bytes: a disk with less room is full
SAID = re.compile(r"^(?:tailprompt \w+: )?(?:error: )?((?<=error: ).+|stopped by .+)$")


def reason(log: Path) -> str | None:
    """The sentence in which a job says why it failed, in the last line of its log; None without one."""
    last = (end_of(log) or [""])[-1]
    if said := SAID.match(last):
        return said[1]
    if last == "KeyboardInterrupt":  # before the stage began, as while it imported torch
        return "stopped by SIGINT"
    return f"a fault of tailprompt ({last})" if in_traceback(end_of(log)) else None


def why_failed(log: Path) -> str:
    """Why a job failed that may have left no reason in its log."""
    if said := reason(log):
        return said
    if (free := room(log)) < FULL:
        return f"the disk of {log} is full ({free:,} bytes are free)"
    if not (lines := end_of(log)):
        return "it ended before it said a word, as where it was cancelled or its machine was lost"
    return (
        "it was ended without a word, as where memory ran out, its time was over or its machine was lost "
        f"(its last: {lines[-1]})"
    )


def in_traceback(lines: list[str]) -> bool:
    """Whether a log ends in an exception."""
    starts = [at for at, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    return bool(starts) and all(line.startswith(" ") for line in lines[starts[-1] + 1 : -1])


def end_of(log: Path) -> list[str]:
    """The last lines of a log that are not blank; none where there is no log."""
    if not log.is_file():
        return []
    with open(log, "rb") as file:
        file.seek(max(0, os.path.getsize(log) - TAIL))
        text = file.read().decode("utf-8", "replace")
    return [line.rstrip() for line in re.split(r"[\r\n]", text) if line.strip()]


def note_failed(failed: dict[int, Path], record: logging.LogRecord) -> bool:
    """Keep in `failed` the log of each job that failed for good, by what Snakemake tells, shown or not.

    A filter of Snakemake's logger that lets all pass. `--quiet rules` hides errors from screen and log.
    """
    event = getattr(record, "event", None)
    if event == "job_error" and record.log:
        failed[record.jobid] = Path(record.log[0])
    elif event == "job_finished":
        failed.pop(record.job_id, None)
    return True


def last_words(logs: Collection[Path]) -> str:
    """What the screen shows last when Snakemake failed. logs: those of the jobs that failed."""
    if not logs:
        return ""
    title = "1 job failed:" if len(logs) == 1 else f"{len(logs)} jobs failed:"
    return "\n".join(["", title, *grouped((why_failed(log), str(log)) for log in logs)])


def grouped(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of (reason, place) pairs, one a reason with its first place and the number of the others."""
    pairs = list(reasons)
    counts, first = Counter(why for why, _ in pairs), {why: place for why, place in reversed(pairs)}
    return [
        f"  {first[why]}{f' and {number - 1} more' if number > 1 else ''}: {why}"
        for why, number in counts.items()
    ]
