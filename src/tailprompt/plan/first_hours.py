"""How long a first round takes, and a run of it with a larger backbone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from tailprompt.machine.cpus import CPUS
from tailprompt.plan import blocks
from tailprompt.plan.forecast import finished_of, limited, seconds_left
from tailprompt.plan.hours import START, by_rule, on_cpu
from tailprompt.plan.points import Point, parse


def told(scale: dict, root: Path = Path(".")) -> list[str]:
    """How long what is left of the round takes on this machine, by method, and what it leaves out."""
    points, cpu = blocks.all_points(scale), on_cpu(scale)
    done = finished_of(scale, points, root)
    rest = [point for point in points if point not in done]
    if not rest:
        return [f"all {len(points)} runs are done", *limited(scale)]
    left = seconds_left(scale, rest, done, root, cpu=cpu)
    by_method: dict[str, float] = {}
    for point in rest:
        by_method[point.method] = by_method.get(point.method, 0) + left[point]
    at_once = CPUS if cpu else 1
    each = ", ".join(f"{name} {seconds / at_once / 60:.0f}" for name, seconds in by_method.items())
    total = sum(by_method.values()) / at_once / 60
    return [
        f"{len(rest)} runs{f' of {len(points)}, the others are done,' if done else ','} about {total:.0f} "
        f"minutes on {'the CPU' if cpu else 'the GPU'} by "
        f"{'those' if done else 'a rule of thumb (wrong by a factor of three either way at times)'}",
        f"minutes by method: {each}",
        *limited(scale),
    ]


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
        f"{took * large / small / 60:.0f} minutes a run of {title} here, where one took {took:.0f} s; the "
        f"config names it: backbones: {{{language}: {other}}}."
    ]
