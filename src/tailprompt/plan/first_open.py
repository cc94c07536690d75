"""What of a first round has not ended, and why, for its page and for the screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tailprompt.errors import counted
from tailprompt.plan import blocks, faults, standing
from tailprompt.plan.places import report_file
from tailprompt.plan.points import Point
from tailprompt.plan.present import narrowed
from tailprompt.plan.status import State, state_of

SAID = {
    "failed": "Failed",
    "stale": "To be run again",
    "damaged": "Damaged",
    "running": "Still running",
    "starting": "Still starting",
    "to do": "Not run",
}
LEFT_OUT = "A method that lacks runs of others is not compared."


def states(scale: dict, root: Path = Path(".")) -> dict[Point, State]:
    """Where each run of the round stands."""
    here = standing.present(scale, root)
    return {point: state_of(scale, point, here, root, {}) for point in blocks.all_points(scale)}


def ended(scale: dict, block: dict, found: Mapping[Point, State], root: Path = Path(".")) -> dict | None:
    """A table with the runs that ended alone; None if none did. found: what `states` returns."""
    results = root / "results" / scale["scale"]
    return narrowed(
        block,
        is_here=lambda point: found[point].name == "done",
        prepared=lambda dataset: report_file(results, dataset).is_file(),
    )


def told(scale: dict, found: Mapping[Point, State], root: Path = Path(".")) -> list[str]:
    """A sentence for each other job that failed, and for each reason for which runs have not ended.

    Where no run has ended, those that did not begin are not named.
    """
    some = any(state.name == "done" for state in found.values())
    by_method: dict[str, list[State]] = {}
    for point, state in found.items():
        by_method.setdefault(point.method, []).append(state)
    reasons: dict[tuple[str, str], list[str]] = {}
    for method, own in by_method.items():
        if rest := [state for state in own if state.name != "done"]:
            first = next((state for state in rest if state.name == "failed"), rest[0])
            of = f"{blocks.title(scale, method)} ({len(rest)} of {counted(len(own), 'run')})"
            reasons.setdefault((first.name, first.about), []).append(of)
    said = [
        f"{SAID[name]}: {', '.join(methods)}{f': {about}' if about else ''}."
        for (name, about), methods in reasons.items()
        if some or about
    ]
    failed = faults.of_other_jobs(scale, blocks.shown(scale), root)
    jobs = [f"A job failed: {why} ({log})." for why, log in failed]
    return [*jobs, *said, *([LEFT_OUT] if said and some else [])]
