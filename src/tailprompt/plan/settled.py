"""Let Snakemake leave a job that is settled, as what its inputs hold tells, whatever their times and places.

Snakemake compares times, and the paths of a job's inputs with those of when it ran. A file that was touched,
copied or prepared here after a bundle had brought it would make anew what was made of the same. A job that
makes one of the inputs still does.
"""

from __future__ import annotations

from functools import wraps

from snakemake.io import flag, is_flagged

SETTLED = "settled"


def settled(files: dict[str, str | list[str]]) -> dict[str, str | list[str]]:
    """The inputs of a settled job."""
    return {name: flag(file, SETTLED) for name, file in files.items()}


def heed(file: type, persistence: type) -> None:
    """Let Snakemake heed what is settled. file, persistence: its classes."""
    newer, changed = file.is_newer, persistence.input_changed

    @wraps(newer)
    async def is_newer(self, time):
        return not is_flagged(self, SETTLED) and await newer(self, time)

    @wraps(changed)
    def input_changed(self, job, file=None):
        return [] if any(is_flagged(each, SETTLED) for each in job.input) else changed(self, job, file)

    file.is_newer, persistence.input_changed = is_newer, input_changed
