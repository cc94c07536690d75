"""How long a first round takes, and a run of it with a larger backbone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from tailprompt.errors import counted
from tailprompt.machine.cpus import CPUS
from tailprompt.plan import blocks
from tailprompt.plan.forecast import finished_of, limited, seconds_left, unmeasured
from tailprompt.plan.hours import START, by_rule, on_cpu
from tailprompt.plan.points import Point, parse


def told(scale: dict, root: Path = Path(".")) -> list[str]:
    """How long what is left of the round takes on this machine, by method, and what it leaves out."""
    seconds, done, by = estimated(scale, root)
    if not seconds:
        return [f"all {counted(len(done), 'run')} are done", *limited(scale)]
    by_method: dict[str, float] = {}
    for point, each in seconds.items():
        by_method[point.method] = by_method.get(point.method, 0) + each
    each = ", ".join(f"{name} {minutes(spent)}" for name, spent in by_method.items())
    long = max(by_method.values()) >= 60
    of = f" of {len(done) + len(seconds)}, the others are done," if done else ","
    return [
        f"{counted(len(seconds), 'run')}{of} {about(sum(seconds.values()))} {by}",
        *([f"minutes by method: {each}"] if long else []),
        *limited(scale),
    ]


def left(scale: dict, root: Path = Path(".")) -> str:
    """How many runs are done, and how long the rest takes."""
    seconds, done, _ = estimated(scale, root)
    if not seconds:
        return f"all {counted(len(done), 'run')} are done; tables and the page are next"
    return f"{len(done)} of {len(done) + len(seconds)} runs done, {about(sum(seconds.values()))} left"


def estimated(scale: dict, root: Path) -> tuple[dict[Point, float], list[Point], str]:
    """The seconds of each run left, when as many run at once as will; those done; where this is from."""
    points, cpu = blocks.all_points(scale), on_cpu(scale)
    done = finished_of(scale, points, root)
    rest = [point for point in points if point not in done]
    at_once = CPUS if cpu else 1
    left = seconds_left(scale, rest, done, root, cpu=cpu)
    seconds = {point: each / at_once for point, each in left.items()}
    where, guessed = "CPU" if cpu else "GPU", unmeasured(rest, done)
    if not done:
        by = "no run is measured yet, so it may be a third of that or three times as much"
        return seconds, [], f"on the {where} by a rule of thumb ({by})"
    also = " and, for methods without one, a rule of thumb" if guessed else ""
    return seconds, [*done], f"on the {where}, by what {counted(len(done), 'finished run')} took{also}"


def about(seconds: float) -> str:
    """A time in whole minutes, in a clause."""
    return f"about {counted(round(seconds / 60), 'minute')}" if seconds >= 60 else "less than a minute"


def minutes(seconds: float) -> str:
    """Whole minutes, and what is under one, in a list."""
    return f"{seconds / 60:.0f}" if seconds >= 60 else "under 1"


def elsewhere(scale: dict, runs: pd.DataFrame, root: Path = Path(".")) -> list[str]:
    """A sentence on the backbone of a full comparison, and the time of the slowest method with it.

    That is its time here, of the methods that learn by steps, times the ratio of the backbones' by rule.
    """
    here = runs[runs.there]
    learned = here[[bool(record.get("steps")) for record in here.record]]
    if learned.empty:
        return []
    seconds = (
        learned.record.map(lambda record: record["seconds"]).groupby(learned.method, sort=False).median()
    )
    run = learned[learned.method == seconds.idxmax()].iloc[0]
    point = Point("mine", run.backbone, run.dataset, run.run, run.seed)
    language = scale["datasets"][parse(point.dataset)[0]].get("language", "en")
    other = scale["protocols"]["across"]["backbones"].get(language)
    if other is None or other == point.backbone:
        return []
    cpu, took = on_cpu(scale), seconds.max()
    both = (point, replace(point, backbone=other))
    small, large = (by_rule(scale, one, root, cpu=cpu) - START for one in both)
    size, title = scale["backbones"][other].get("megabytes", 0), blocks.title(scale, run.run)
    return [
        f"Another backbone was not tried. {other} (a download of {size:,} MB) would take about "
        f"{took * large / small / 60:.0f} minutes a run of {title} here, where one took {took:.0f} s. To "
        f"try it, or one that knows these {'images' if language == 'image' else 'texts'} better, write "
        f"backbones: {{{language}: {other}}}, or its name, in the config."
    ]
