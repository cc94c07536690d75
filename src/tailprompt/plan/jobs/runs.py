"""The inputs and resources of a training job."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tailprompt.model.adapter_config import WEIGHTS
from tailprompt.plan.jobs import data
from tailprompt.plan.places import brought
from tailprompt.plan.points import Point
from tailprompt.plan.rows import cards_of
from tailprompt.plan.starts import start_of, starting, starts_of


def requested(config: dict, arguments: Iterable[str]) -> list[Point]:
    """The runs whose files a command asks for by their paths, which no table need take, and their starts."""
    points = named(config, arguments)
    return [each for point in points for each in (point, *starts_of(config, point))]


def named(config: dict, arguments: Iterable[str]) -> list[Point]:
    """The runs whose files a command names by their paths."""
    form = re.compile(rf"results/{config['scale']}/runs/((?:[^/]+/){{4}}\d+)/")
    return [Point.at(match[1]) for target in arguments if (match := form.match(target))]


def start_weights(config: dict, point: Point) -> list[str]:
    """The weights file that a run begins from; [] if its method has no `start`."""
    if folder := (starting(config, point) or {}).get("folder"):
        return [f"{folder}/{WEIGHTS}"]
    start = start_of(config, point)
    return [weights_of(config["scale"], start)] if start else []


def taken(folder: Path) -> list[str]:
    """The files that other jobs take of a run that is what is asked; none if a bundle brought it."""
    return (
        []
        if brought(folder)
        else [f"{folder}/{name}" for name in ("predictions.parquet", "weights.safetensors")]
    )


def weights_of(scale: str, point: Point) -> str:
    """The weights of a run."""
    return f"results/{scale}/runs/{point.path}/weights.safetensors"


def to_train(config: dict, point: Point) -> dict[str, str | list]:
    """The input files of training, beside what it is asked."""
    results = f"results/{config['scale']}"
    return {
        "data": f"{results}/data/{point.dataset}.parquet",
        "images": data.images(config, point.dataset),
        "backbone": f"{results}/backbones/{point.backbone}.json",
        "start": start_weights(config, point),
    }


def slots_taken(wanted: int, *, device: str, slots: int, cards: int | None) -> int:
    """The GPU slots that a training job takes: none on a CPU; `auto` takes GPUs if there are any.

    A job on several GPUs takes all their slots. wanted: GPUs of the job. cards: GPUs of this machine, None on
    a cluster.
    """
    if device == "cpu" or device == "auto" and cards == 0:
        return 0
    return wanted if cards is None or wanted == 1 else min(wanted, cards) * slots


def cards(config: dict, path: str) -> int:
    """The GPUs of a training job: `cards` in the row of its backbone. path: of its point."""
    return cards_of(config, Point.at(path).backbone)


def host_mb(config: dict, path: str) -> int:
    """Main memory of a training job in MB, which may hold a part of a backbone with a device map."""
    row = config["backbones"][Point.at(path).backbone]
    return int(12000 + row.get("megabytes", 0) * ("device_map" in row))
