"""Where the runs of a scale stand: done, running, queued, failed and why, stale and why, damaged, or to do.

One to do is not here where `train: false` trains nothing. And how many of its tables and figures are made.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tailprompt.errors import BadInput, counted
from tailprompt.files import read_json
from tailprompt.plan import (
    agreement,
    asked,
    blocks,
    brought,
    faults,
    left_open,
    leftover,
    present,
    searches,
    standing,
    unmade,
)
from tailprompt.plan.digests import digest_of, digest_of_images
from tailprompt.plan.forecast import UNTRAINED, finished, hours, seconds_left
from tailprompt.plan.held import holder, name_of
from tailprompt.plan.hours import on_cpu
from tailprompt.plan.points import Point
from tailprompt.plan.reasons import end_of, grouped, reason, why_failed
from tailprompt.plan.runnable import check_files
from tailprompt.plan.settings import settings

DONE, FAILED, OPEN = 0, 1, 3  # exit statuses; 2 is bad input
LEFT = re.compile(r"at most ([\d,]+) minutes left$")
NEVER = {  # SLURM's reasons for which a job waits for ever
    "PartitionConfig": "no node of its partition has the CPUs, memory or GPUs that it asks for",
    "PartitionTimeLimit": "its partition ends jobs before the time that it asks for",
}
STATES = ("done", "running", "starting", "queued", "failed", "stale", "damaged", "to do", "not here")
ENDED = ("done", "damaged")  # which snakemake does not train


@dataclass(frozen=True)
class State:
    """Where a run stands.

    about: who trains it and how far, or what is wrong with it. seconds: that a finished run took.
    """

    name: str
    about: str = ""
    seconds: float = 0.0


def status(
    config: dict,
    root: Path = Path("."),
    queue: dict[str, str] | None = None,
    files: Iterable[str | Path] = (),
) -> tuple[str, int]:
    """What `tailprompt status` prints, and its exit status.

    queue: what `queued` returns. files: of the configuration, among which may be what searches chose.
    """
    digest_of_images.cache_clear()  # with --watch they may be others now
    here, whole = standing.present(config, root), blocks.shown(config)
    points = present.needed(config, here, root)
    jobs = queued(root) if queue is None else queue
    states = {point: state_of(config, point, here, root, jobs) for point in points}
    found = Counter(state.name for state in states.values())
    counts = ", ".join(f"{found[name]} {name}" for name in STATES if found[name])
    trains = config.get("train", True)
    is_here = partial(present.run_is_here, config, here=here, root=root)
    others = faults.of_other_jobs(config, unmade.shown_here(config, whole, is_here, root), root)
    tables, all_made = unmade.told(config, whole, here, root)
    lines = [f"scale {config['scale']}, {counted(len(points), 'run')}: {counts}", tables]
    lines += of(states, "running", together=False)
    for name in ("queued", "failed", "stale"):
        lines += of(states, name)
    lines += of(states, "damaged", ", which snakemake leaves and no table takes anew")
    backbones = sorted({point.backbone for point in points})
    damaged = standing.damaged(config, blocks.all_datasets(config), backbones, root) if trains else []
    lines += ["damaged, and made anew by snakemake:", *(f"  {file}" for file in damaged)] if damaged else []
    checkpoints = standing.altered_checkpoints(config, root)
    told = "damaged, of checkpoints, which snakemake makes anew before a run is trained on them:"
    lines += [told, *(f"  {file}" for file in checkpoints)] if checkpoints else []
    lines += ["failed, of other jobs:", *grouped(others)] if others else []
    waiting = [(job, about) for about, job in jobs.items() if of_another_rule(about, config["scale"])]
    lines += ["queued, of other jobs:", *grouped(waiting)] if waiting else []
    results = root / "results" / config["scale"]
    to_train = [point for point, state in states.items() if state.name not in ENDED] if trains else []
    try:
        check_files(config, root)
        brought.check_runs(results, [point for point, state in states.items() if state.name not in ENDED])
        lines += left_open.lines(config, to_train, here, root)
    except BadInput as error:
        lines += [f"{left_open.STARTS_NOT}: {error}"]
    lines += leftover.lines(leftover.leftover(config, root))
    lines += (refused := searches.refused(config, files, root))
    lines += time_left(config, states, root) if trains else [UNTRAINED]
    if others or trains and found["failed"]:
        return "\n".join(lines), FAILED
    finished_all = found["done"] == len(points) and not (damaged or checkpoints) or not trains
    return "\n".join(lines), DONE if finished_all and all_made and not refused else OPEN


def state_of(config: dict, point: Point, here: standing.Present, root: Path, jobs: dict[str, str]) -> State:
    """Where a run stands. jobs: of the queue."""
    results = root / "results" / config["scale"]
    folder, log = standing.run_folder(config, point, here, root), results / "logs/train" / f"{point.path}.log"
    if (who := holder(results / "runs" / point.path)) is not None:
        return State("running", f"{name_of(who)}: {(end_of(log) or ['it begins'])[-1]}")
    try:
        seconds = finished(config, point, here, root)
    except BadInput as error:
        return State("stale", str(error))
    if seconds is not None:
        wrong = what_is_damaged(folder, root)
        return State("damaged" if wrong else "done", wrong, seconds)
    if job := jobs.get(comment(config["scale"], point)):
        return State("queued", job)

    def wanted() -> dict:
        return asked.asked(config, point, settings(config, point), here.weights(point.backbone), root)

    whole = (folder / "run.json").is_file()
    ended = folder.is_dir() and not whole  # without a folder the log is of a former run
    if log.is_file() and (reason(log) or ended) and faults.of_a_run(config, point, log, wanted, root):
        says_nothing = faults.at_work(results) and not end_of(log)
        return State("starting") if says_nothing else State("failed", why_failed(log))
    if whole:
        return State("stale", why_stale(folder, wanted(), standing.waits_for_rows(config, point, here, root)))
    return State("to do" if config.get("train", True) else "not here")


def what_is_damaged(folder: Path, root: Path) -> str:
    """Which file of a finished run is not what it wrote, and what to do; empty where all are."""
    try:
        agreement.check_intact(folder, read_json(folder / "run.json"))
        agreement.check_weights(folder, partial(digest_of, root=root))
    except BadInput as error:
        return str(error)
    return ""


def why_stale(folder: Path, wanted: dict, changed: list[str]) -> str:
    """In what a run is not the one that is asked. changed: data sets that will have other rows."""
    record = agreement.tolerant(folder / "run.json") or {}
    if not agreement.is_of(folder, record):
        return "holds the files of another run"
    if wrong := agreement.differing(record, wanted):
        return f"differs in {', '.join(wrong)}"
    if not agreement.complete(folder):
        return "lacks some of its files"
    if changed:
        return f"the row or the files of {', '.join(changed)} are others now, and the data are prepared anew"
    return "its data or its start are others now"


def queued(folder: Path) -> dict[str, str]:
    """The jobs in SLURM's queue that were submitted from a folder: Snakemake's comment -> `job 17, pending`.

    And why one waits: SLURM says nothing where it is submitted of one that will never start.
    """
    try:
        command = ["squeue", "--me", "--noheader", "--format=%i|%T|%r|%Z|%k"]
        listing = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = [line.split("|", 4) for line in listing.splitlines() if line.count("|") >= 4]
    return {
        about: f"job {number}, {state.lower()}{why_waiting(reason)}"
        for number, state, reason, place, about in rows
        if Path(place).resolve() == folder.resolve()
    }


def why_waiting(reason: str) -> str:
    """SLURM's reason for a job's state, and what it means where waiting does not help."""
    if reason in ("", "None"):
        return ""
    return f" ({reason}{f': {NEVER[reason]}' if reason in NEVER else ''})"


def comment(scale: str, point: Point) -> str:
    """The comment that Snakemake's executor gives the job of a run."""
    return f"rule_train_wildcards_{scale}_{point.path.replace('/', '_')}"


def of_another_rule(about: str, scale: str) -> bool:
    """Whether a comment is that of a job of this scale that trains no run."""
    return f"_wildcards_{scale}_" in about and not about.startswith("rule_train_")


def of(states: dict[Point, State], name: str, more: str = "", *, together: bool = True) -> list[str]:
    """The lines of the runs in a state, those with the same reason together. more: said of the state."""
    pairs = [(state.about, point.path) for point, state in states.items() if state.name == name]
    lines = grouped(pairs) if together else [f"  {place}: {about}" for about, place in pairs]
    return [f"{name}{more}:", *lines] if pairs else []


def time_left(config: dict, states: dict[Point, State], root: Path) -> list[str]:
    """How long the remaining runs take, by what finished ones took and what running ones say."""
    done = {point: state.seconds for point, state in states.items() if state.name in ENDED}
    rest = [point for point in states if point not in done]
    left = seconds_left(config, rest, done, root, cpu=on_cpu(config))
    for point, state in states.items():
        if state.name == "running" and (found := LEFT.search(state.about)):
            log = root / "results" / config["scale"] / "logs/train" / f"{point.path}.log"
            age = time.time() - log.stat().st_mtime
            left[point] = max(0.0, 60 * float(found[1].replace(",", "")) - age)
    return hours(left, done, {})
