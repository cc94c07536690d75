"""What the job of a run takes."""

from __future__ import annotations

from pathlib import Path

from tailprompt.model.adapter_config import WEIGHTS
from tailprompt.plan import agreement, asked
from tailprompt.plan.jobs import data
from tailprompt.plan.points import Point
from tailprompt.plan.starts import starting, starts_of


def start_weights(config: dict, point: Point) -> list[str]:
    """Weights that a run begins from, where its method has a `start`."""
    if folder := (starting(config, point) or {}).get("folder"):
        return [f"{folder}/{WEIGHTS}"]
    nearest = starts_of(config, point)[:1]
    return [f"results/{config['scale']}/runs/{start.path}/weights.safetensors" for start in nearest]


def to_train(config: dict, point: Point) -> dict[str, str | list]:
    """The files that training takes."""
    results = f"results/{config['scale']}"
    return {
        "asked": f"{results}/asked/{point.path}.json",
        "data": f"{results}/data/{point.dataset}.parquet",
        "images": data.images(config, point.dataset),
        "backbone": f"{results}/backbones/{point.backbone}.json",
        "start": start_weights(config, point),
    }


def stands(
    config: dict, point: Point, told: dict, weights: dict | None, *, write: bool, root: Path = Path(".")
) -> bool:
    """Whether a run on disk is what is asked of it.

    write: whether to bring the file that says what is asked up to date.
    """
    results = root / "results" / config["scale"]
    wanted = asked.asked(config, point, told, weights, root)
    found = agreement.stands(wanted, point, results / "runs")
    if write:
        file = results / "asked" / f"{point.path}.json"
        asked.write(file, wanted, results / "runs" / point.path, settled=found)
    return found


def slots_taken(wanted: int, *, device: str, slots: int, cards: int | None) -> int:
    """Slots of cards for a training job: none on a CPU; `auto` follows this machine, or asks the cluster.

    A job of several cards takes them whole, as many as there are. cards: of this machine, None on a cluster.
    """
    if device == "cpu" or device == "auto" and cards == 0:
        return 0
    return wanted if cards is None or wanted == 1 else min(wanted, cards) * slots


def host_mb(config: dict, backbone: str) -> int:
    """Main memory of a training job: more where its backbone is laid over cards, which may leave it some."""
    row = config["backbones"][backbone]
    return int(12000 + row.get("megabytes", 0) * ("device_map" in row))
