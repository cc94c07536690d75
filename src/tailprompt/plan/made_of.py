"""What a table, figure, table of scores or first page is made of, as one digest in the seal of its files.

Times of files tell nothing where runs, data or code were moved, copied or put back from a backup. What was
made of others than are here is made again. `of` in the file that says what is asked lists them: paths of
`runs`, names of data sets (`data`), and other `files`.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from tailprompt.files import sealed, sha256
from tailprompt.plan.places import report_file, run_folder
from tailprompt.plan.points import Point

OF = "made of"  # the name in the seal


def digest_of(of: dict[str, list[str]], results: Path) -> str:
    """The digest of the content of all that is listed, wherever it lies; some may be missing.

    A run.json has the digests of the run's other files, and a report that of its data.
    """
    runs = (run_folder(results, Point.at(run)) / "run.json" for run in of["runs"])
    reports = (report_file(results, dataset) for dataset in of["data"])
    digests = map(content, [*runs, *reports, *map(Path, of["files"])])
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


@cache
def content(file: Path) -> str:
    """The digest of a file, computed once for all that is made of it; none without the file."""
    return sha256(file) if file.is_file() else ""


def is_made_of(file: Path, of: dict[str, list[str]], results: Path) -> bool:
    """Whether a file was made of what is here now; False where its seal does not say."""
    return sealed(file).get(OF) == digest_of(of, results)
