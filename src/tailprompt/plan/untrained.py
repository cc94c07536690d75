"""Runs that a bundle brought, and that turn out to stand when a job that would train them begins.

That is where only preparing shows that the rows are the same. No bundle brings weights, and Snakemake wants
all outputs of a job: while it works others stand in for them, which are no run.
"""

from __future__ import annotations

from pathlib import Path

from tailprompt.files import write_json
from tailprompt.plan.agreement import OUTPUTS, stands_in, tolerant
from tailprompt.plan.places import in_bundles

STANDS = "stands"  # the one key of a run.json that stands in for that of a bundle


def stands(folder: Path, wanted: dict) -> bool:
    """Whether a bundle brought the run of a folder as it is asked, on the rows of now."""
    return stands_in(in_bundles(folder), wanted)


def stand_in(folder: Path) -> Path:
    """Write files without content for the outputs of a run; returns the folder of that for which they are."""
    for name in OUTPUTS[:-1]:
        (folder / name).write_bytes(b"")
    write_json(folder / "run.json", {STANDS: str(in_bundles(folder))})
    return in_bundles(folder)


def clear(folder: Path) -> None:
    """Remove such files of a run."""
    if not (in_bundles(folder) / "run.json").is_file():  # which is sooner seen
        return
    if (tolerant(folder / "run.json") or {}).keys() == {STANDS}:
        for name in OUTPUTS:
            (folder / name).unlink(missing_ok=True)
