"""What a table, figure, table of scores or first page is made of, as one digest in the seal of its files.

Times of files tell nothing where runs, data or code were moved, copied or put back from a backup. What was
made of others than are here is made again, and what was made by another `spec`. In the file that says what is
asked, `of` lists paths of `runs`, names of data sets (`data`), and other `files`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tailprompt.files import as_read, sha256
from tailprompt.plan.agreement import DATA, digest, tolerant
from tailprompt.plan.either import run_folder
from tailprompt.plan.places import anywhere, report_file
from tailprompt.plan.points import Point
from tailprompt.seals import sealed

OF = "made of"  # the name in the seal


def digest_of(
    asked: dict,
    results: Path,
    folder_of: Callable[[Point], Path] | None = None,
    root: Path = Path("."),
) -> str:
    """The digest of the `spec` and of the content of what is listed, wherever it lies; some may be missing.

    A run.json has the digests of the run's other files, and a report that of its data. folder_of: that of a
    run, where what it is asked may not be written yet. root: of the other files.
    """
    of, folder_of = asked["of"], folder_of or partial(run_folder, results)
    runs = (folder_of(Point.at(run)) / "run.json" for run in of["runs"])
    reports = (report_file(results, dataset) for dataset in of["data"])
    files = (root / file for file in of["files"])
    digests = [*map(content, runs), *(content(report, said) for report in reports), *map(content, files)]
    return digest([asked["spec"], *digests])


def content(file: Path, read: Callable[[Path], str] = sha256) -> str:
    """The digest of a file by `read`; none without the file."""
    return as_read(file, read) if file.is_file() else ""


def said(report: Path) -> str:
    """The digest of what the report of a data set says on every machine: a bundle brings no more.

    And of whatever files that have the same rows.
    """
    about = tolerant(report) or {}
    row, of_rows, *of_files = about.get("row"), *DATA, "sources"
    files = of_files if of_rows in about else []
    kept = {key: value for key, value in about.items() if key not in files}
    return digest({**kept, "row": anywhere(row) if isinstance(row, dict) else row})


def is_made_of(
    file: Path,
    asked: dict,
    results: Path,
    folder_of: Callable[[Point], Path] | None = None,
    root: Path = Path("."),
) -> bool:
    """Whether a file was made of what is here now, as it is asked; False where its seal does not say."""
    return sealed(file).get(OF) == digest_of(asked, results, folder_of, root)
