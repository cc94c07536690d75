"""Where the files of runs and data sets lie: made here, or brought by a bundle.

`results/<scale>/from_bundles` is laid out as `results/<scale>` is. No rule makes a file there, so nothing
is planned for what a bundle brought. Of two runs the one that is what is asked is taken (`either`); else
what was made here goes first. A scale's name has no underscore.
"""

from __future__ import annotations

from pathlib import Path

from tailprompt.plan.points import Point

BUNDLED = "from_bundles"
MAY_CARRY = (
    "separability.json"  # what tables read in feature vectors, of a run that had those of all examples
)
WHERE = ("path", "root", "files")  # keys of a data set's row that may be of this machine alone


def folders_of(results: Path, point: Point) -> tuple[Path, Path]:
    """Where a run of a scale lies if it was made here, and if a bundle brought it."""
    here = results / "runs" / point.path
    return here, in_bundles(here)


def in_bundles(folder: Path) -> Path:
    """Where a bundle brings the run that is made in `folder`."""
    return Path(*folder.parts[:-6], BUNDLED, *folder.parts[-6:])


def present(folder: Path) -> Path:
    """The folder of a run; where a bundle brought the run if it was not finished in `folder`."""
    other = in_bundles(folder)
    return other if not (folder / "run.json").is_file() and (other / "run.json").is_file() else folder


def begins_at(results: Path, start: dict) -> Path | None:
    """The folder whose weights a run begins from: a run's, or an adapter's. start: as the run is asked."""
    if "run" in start:
        return results / f"runs/{start['run']}"
    return Path(str(start["folder"])) if "folder" in start else None


def report_file(results: Path, dataset: str) -> Path:
    """The report of a data set: that of a bundle if the data set was not prepared here."""
    here, other = (root / "data" / f"{dataset}.json" for root in (results, results / BUNDLED))
    return other if not here.is_file() and other.is_file() else here


def in_bundle(report: Path) -> bool:
    """Whether a report is where bundles bring them, and no job makes it."""
    return BUNDLED in report.parts


def copy_of_report(report: Path) -> Path:
    """Where the job that prepares a data set leaves a copy of its report."""
    return report.parents[1] / "made/reports" / report.name


def anywhere(row: dict) -> dict:
    """What the row of a data set says on every machine, but for what runs on it may start from."""
    return {key: value for key, value in row.items() if key not in (*WHERE, "joined_in")}


def results_of(folder: Path) -> Path:
    """The results folder of the scale to which the run in `folder` belongs."""
    results = Path(*folder.absolute().parts[:-6])
    return results.parent if results.name == BUNDLED else results


def brought(folder: Path) -> bool:
    """Whether the run in `folder` came in a bundle, and so without its weights."""
    return Path(*folder.absolute().parts[:-6]).name == BUNDLED


def file_asking(folder: Path) -> Path:
    """The file that says what the run in `folder` is asked."""
    *point, seed = folder.absolute().parts[-5:]
    return Path(results_of(folder), "asked", *point, f"{seed}.json")


def data_of(folder: Path) -> Path:
    """The Parquet file of the data set of the run in `folder`."""
    report = report_file(results_of(folder), folder.absolute().parent.parent.name)
    return report.with_name(f"{report.stem}.parquet")
