"""Why jobs failed, in a sentence each: from the logs that they left, and from Snakemake's own."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from tailprompt.errors import counted
from tailprompt.files import room

TAIL = 2**16  # bytes at the end of a log that are read
FULL = 2**20  # bytes: a disk with less room is full
ENDED_BY = re.compile(r"SLURM status is: '(\w+)")
REFUSED = re.compile(r"sbatch: error: (.+)")
STATES = {  # of SLURM, for a job that did not come to say why
    "OUT_OF_MEMORY": "it took more memory than it asked SLURM for; give it more (mem_mb), or lower batch",
    "TIMEOUT": "its time was over; give it more (runtime)",
    "NODE_FAIL": "its node was lost; the same command goes on where it was last saved",
    "CANCELLED": "it was cancelled; the same command goes on where it was last saved",
}
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


def note_failed(failed: dict[int, tuple[Path, str]], record: logging.LogRecord) -> bool:
    """Keep in `failed` the log of each job that failed for good, and why, by what Snakemake tells.

    A filter of Snakemake's logger that lets all pass: `--quiet rules` hides errors from screen and log.
    """
    event = getattr(record, "event", None)
    if event == "job_error" and record.log:
        log, *others = map(Path, record.log)
        _, before = failed.get(record.jobid, (log, ""))
        failed[record.jobid] = log, why_ended(log, str(getattr(record, "rule_msg", "")), before, others)
    elif event == "job_finished":
        failed.pop(record.job_id, None)
    return True


def why_ended(log: Path, told: str, before: str = "", others: Iterable[Path] = ()) -> str:
    """Why one attempt of a job failed.

    told: what Snakemake says of it, where a cluster ran it. before: why the attempt before it did, whose log
    is gone when the next one is refused, as where it asks for more. others: SLURM's log.
    """
    if refused := REFUSED.search(told):
        said = f"sbatch refused {'its next attempt' if before else 'it'} ({refused[1]})"
        again = before.endswith(f"({refused[1]})")
        return before if again else f"{before}; {said}" if before else said
    state = ENDED_BY.search(told)
    said = reason(log) or (STATES.get(state[1]) if state else None)
    files = "".join(f"; see also {file}" for file in others if file.is_file())
    return said or f"{why_failed(log)}{files}"


def last_words(failed: Collection[tuple[Path, str]]) -> str:
    """What the screen shows last when Snakemake failed. failed: the log of each job, and why it failed."""
    if not failed:
        return ""
    title = f"{counted(len(failed), 'job')} failed:"
    # a log may be seen late on another machine's disk
    reasons = ((why if "sbatch refused" in why else reason(log) or why, str(log)) for log, why in failed)
    return "\n".join(["", title, *grouped(reasons)])


def grouped(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of (reason, place) pairs, one a reason with its first place and the number of the others."""
    pairs = list(reasons)
    counts, first = Counter(why for why, _ in pairs), {why: place for why, place in reversed(pairs)}
    return [
        f"  {first[why]}{f' and {number - 1} more' if number > 1 else ''}: {why}"
        for why, number in counts.items()
    ]
