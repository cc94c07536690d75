"""A folder belongs to one process at a time, and a run that is finished in its folder is not trained twice.

The lock is the system's, on the file `.lock`, and ends with the process, however that ends; the file says
whose it is. A Snakemake has the results of its scale, and a job the folder of its run. What is finished is
kept in `.finished` too, as hard links: Snakemake removes the outputs of a job before it starts, also those
that the job of a killed driver has just written.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from tailprompt.errors import BadInput
from tailprompt.files import beside, sha256, write_json, writing
from tailprompt.machine.progress import say
from tailprompt.plan.agreement import (
    DIGESTS,
    FINISHED,
    OUTPUTS,
    differing,
    digests_of,
    is_of,
    of_data,
    stands_in,
    tolerant,
)

LOCK = ".lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)  # of a file system without them


@contextmanager
def held(folder: Path, *, pause: float = 2.0) -> Iterator[None]:
    """Hold the lock of a run's folder, once nobody else does; says whom it waits for."""
    file, said = opened(folder), False
    while not locked(file):
        if not said:
            say(f"{folder} is in the hands of {name_of(tolerant(folder / LOCK) or {})}; waiting for it")
            said = True
        time.sleep(pause)
        if not current(file, folder):  # the folder was removed meanwhile
            file.close()
            file = opened(folder)
    with file:
        sign(file)
        yield


def claim(
    results: Path, instead: str = "wait for its end, or give this configuration a scale of its own"
) -> TextIO:
    """Hold the results of a scale until the returned file is closed or this process ends.

    Raises BadInput while another Snakemake does, of whatever checkout: jobs read there what they are asked.
    instead: what to do then.
    """
    file = opened(results)
    if not locked(file):
        file.close()
        who = name_of(tolerant(results / LOCK) or {})
        raise BadInput(f"{results} is in the hands of another Snakemake, {who}; {instead}")
    sign(file)
    return file


def sign(file: TextIO) -> None:
    """Write whose the lock is."""
    job = os.environ.get("SLURM_JOB_ID")
    with writing(file.name):
        file.truncate(0)
        file.write(json.dumps({"host": platform.node(), "pid": os.getpid(), "job": job}))
        file.flush()


def opened(folder: Path) -> TextIO:
    """The file of the lock of a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return open(folder / LOCK, "a", encoding="utf-8")


def locked(file: TextIO, how: int = fcntl.LOCK_EX) -> bool:
    """Whether this process could lock the file; True on a file system without locks."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        say(f"{file.name}: this file system has no locks, so two processes could write here at once")
    return True


def current(file: TextIO, folder: Path) -> bool:
    """Whether an open file still is the lock of the folder."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(folder / LOCK))
    return False


def holder(folder: Path) -> dict | None:
    """Who holds the folder of a run: host, pid and SLURM's job; None if nobody does."""
    with suppress(FileNotFoundError), open(folder / LOCK, encoding="utf-8") as file:
        if not locked(file, fcntl.LOCK_SH):
            return tolerant(folder / LOCK) or {}
    return None


def name_of(who: dict) -> str:
    """A holder in words."""
    job = f"job {who['job']}, " if who.get("job") else ""
    return f"{job}process {who.get('pid', 'unknown')} on {who.get('host', 'an unknown machine')}"


def keep(folder: Path) -> None:
    """Keep the files of a finished run, unless the file system has no hard links."""
    forget(folder)  # of a run that was finished here before
    with suppress(OSError), beside(folder / FINISHED) as temporary:
        for name in OUTPUTS:
            os.link(folder / name, copy_of(temporary, name))
        write_json(temporary / DIGESTS, {name: sha256(folder / name) for name in OUTPUTS})
        os.replace(temporary, folder / FINISHED)


def forget(folder: Path) -> None:
    """Give up what is kept of a finished run, which is then trained if it is asked for again."""
    shutil.rmtree(folder / FINISHED, ignore_errors=True)


def copy_of(kept: Path, name: str) -> Path:
    """Where a file is kept: by another name, so that who looks for runs below a folder does not find it."""
    return kept / f"{name}.kept"


def finished(folder: Path, wanted: dict, *, start: str | None, replaced: int) -> bool:
    """Whether the run that is asked is finished, on the rows of now; its files are then put in place.

    start: digest of the weights that the run begins from. replaced: the time, in nanoseconds, of the outputs
    that are to be replaced; 0 if there are none.
    """
    kept = {name: copy_of(folder / FINISHED, name) for name in OUTPUTS}
    record = tolerant(kept["run.json"])
    if record is None or not is_of(folder, record) or differing(record, wanted):
        return False
    digests = tolerant(folder / FINISHED / DIGESTS) or {}
    if record.get("start_sha256") != start or not of_data(record, folder):
        return False
    if not intact(kept, digests) or made(kept) <= replaced:
        return False
    for name, file in kept.items():
        if not (folder / name).is_file():
            os.link(file, folder / name)
        os.utime(folder / name)  # as if made now: Snakemake compares times
    return True


def may_stand(folder: Path, wanted: dict, *, began: bool = True) -> bool:
    """Whether a run is what is asked, and stands if its data keep their rows and its start its weights.

    began: False if its start is to be trained first, whose weights may be the same again.
    """
    record = tolerant(folder / "run.json") or {}
    return bool(digests_of(record.get("data"))) and stands_in(folder, wanted, began=began)


def intact(kept: dict[str, Path], digests: dict) -> bool:
    """Whether all files are there and have the digests of their names."""
    return all(file.is_file() and digests.get(name) == sha256(file) for name, file in kept.items())


def made(kept: dict[str, Path]) -> int:
    """When the last of the files was written, in nanoseconds."""
    return max(file.stat().st_mtime_ns for file in kept.values())
