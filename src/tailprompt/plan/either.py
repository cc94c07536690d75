"""Of a run that was made here and one that a bundle brought, the one that stands (`plan.agreement`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tailprompt.errors import tell
from tailprompt.plan.agreement import asked_of, stands_in, start_is_here, tolerant
from tailprompt.plan.places import brought, in_bundles, present
from tailprompt.plan.points import Point


def run_folder(
    results: Path,
    point: Point,
    wanted: Callable[[], dict | None] | None = None,
    rows: dict[str, str] | None = None,
) -> Path:
    """The folder of a run in the results of a scale, as `taken` finds it."""
    return taken(results / "runs" / point.path, wanted, rows)


def taken(
    here: Path, wanted: Callable[[], dict | None] | None = None, rows: dict[str, str] | None = None
) -> Path:
    """The folder of a run: of that made in `here` and that of a bundle the one which stands.

    The one made here if both do, or neither. wanted: returns what the run is asked; None for what its file
    in `asked` says. rows: digests of those that its data set will have, if others.
    """
    folders = (here, in_bundles(here))
    if not all((folder / "run.json").is_file() for folder in folders):
        return present(here)
    asked = wanted() if wanted else asked_of(here)
    standing = [folder for folder in folders if asked and stands_in(folder, asked, rows)]
    return (standing or folders)[0]


def with_weights(run: Path) -> Path:
    """The folder of a run for what needs its weights: the one that was made here, as no bundle brings any.

    Says so where tables show the other.
    """
    folder = present(run)
    if not brought(folder) and brought(shown := taken(folder)):
        tell(f"{folder} is not what is asked now; tables show {shown}, whose weights did not travel")
    return folder


def came_alone(folder: Path) -> bool:
    """Whether a bundle brought the run in `folder` without its start, which is not here as asked either."""
    start = (tolerant(folder / "run.json") or {}).get("start") or {}
    return brought(folder) and "run" in start and not start_is_here(start, folder)
