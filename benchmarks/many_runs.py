"""Train every run of a scale on this machine without Snakemake, many in parallel, and print a short table.

It is for a machine with GPUs and torch but without Snakemake. Finished runs are skipped, and killed runs
resume. Data sets must have been prepared (`snakemake fetch`). A worker trains many runs in one process, so
that a run costs no start-up.

    PYTHONPATH=src python benchmarks/many_runs.py --configfile config/mini.yaml --jobs 16 --only r52-rebuilt
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt import gpus as cards
from tailprompt import score
from tailprompt.plan import blocks
from tailprompt.plan.asked import asked, weights
from tailprompt.plan.config import load
from tailprompt.plan.points import Point
from tailprompt.plan.settings import settings
from tailprompt.plan.starts import start_of, starting, starts_of


def choose_card(visible: list[str]) -> None:
    """Give each worker one of the visible GPUs in turn; must run before anything touches CUDA."""
    if visible:
        number = multiprocessing.current_process()._identity[0]
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[number % len(visible)]


def work(job: tuple) -> tuple[str, float, str]:
    """Train one run in this worker; returns how long it took, or what went wrong."""
    import torch

    from tailprompt.model.adapter import is_adapter
    from tailprompt.train import repeatable, train

    root, point, told, start = job
    begun, folder = time.monotonic(), root / "runs" / point.path
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "log", "a") as log:
        os.dup2(log.fileno(), 2)
    try:
        repeatable(1)
        while start and not (start / "run.json").exists() and not is_adapter(start):
            time.sleep(1)  # starts come first, so another worker has it
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        train(root, point, told, device, start)
    except Exception as error:  # one failed run must not end the others
        return point.path, time.monotonic() - begun, f"{type(error).__name__}: {error}"
    return point.path, time.monotonic() - begun, ""


def jobs(config: dict, root: Path, only: list[str], methods: list[str]) -> list[tuple]:
    """The runs that are left to train, long data sets first."""
    points = [point for point in blocks.all_points(config) if any(name in point.dataset for name in only)]
    points = [point for point in points if not methods or point.method in methods]
    points.sort(key=lambda point: len(starts_of(config, point)))
    points.sort(key=lambda point: [name in point.dataset for name in only], reverse=True)
    left = [point for point in points if not (root / "runs" / point.path / "run.json").exists()]
    return [
        (
            root,
            point,
            asked(config, point, settings(config, point), weights(config, point.backbone)),
            start(config, root, point),
        )
        for point in left
    ]


def start(config: dict, root: Path, point: Point) -> Path | None:
    """The folder of the run, or of the adapter, that a point starts from."""
    if folder := (starting(config, point) or {}).get("folder"):
        return Path(folder)
    begin = start_of(config, point)
    return root / "runs" / begin.path if begin else None


def table(root: Path) -> pd.DataFrame:
    """The mean over seeds of the scores in SHOWN on test, in points."""
    rows = []
    for path in root.glob("runs/*/*/*/*/*/run.json"):
        point = Point.at(str(path.parent.relative_to(root / "runs")))
        scores = score.scores_of(path.parent, root / "data" / f"{point.dataset}.json")
        scores = scores.query("split == 'test'").set_index(["metric", "group"])["value"]
        run = json.loads(path.read_text())
        shown = {f"{metric}/{group}": 100 * scores.get((metric, group), np.nan) for metric, group in SHOWN}
        rows.append(
            {"dataset": point.dataset, "method": point.method, **shown, "seconds": run["seconds"], "seed": 1}
        )
    if not rows:
        return pd.DataFrame()
    grouped = pd.DataFrame(rows).groupby(["dataset", "method"], sort=True)
    return grouped.agg(
        {**{column: "mean" for column in [f"{m}/{g}" for m, g in SHOWN] + ["seconds"]}, "seed": "count"}
    )


SHOWN = [
    *[("accuracy", "all"), ("f1", "all"), ("f1", "head"), ("f1", "tail")],
    *[("accuracy", "many"), ("accuracy", "medium"), ("accuracy", "few")],
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configfile", required=True)
    parser.add_argument("--jobs", type=int, default=8, help="runs side by side")
    parser.add_argument("--only", nargs="*", default=[""], help="data sets whose name holds one of these")
    parser.add_argument("--methods", nargs="*", default=[])
    parser.add_argument(
        "--seconds", type=float, default=1e6, help="stop after so long; what runs then resumes"
    )
    options = parser.parse_args()
    config = load([options.configfile])
    root = Path("results") / config["scale"]
    todo, begun = jobs(config, root, options.only, options.methods), time.monotonic()
    print(f"{len(todo)} runs, {options.jobs} side by side", flush=True)
    with multiprocessing.get_context("spawn").Pool(options.jobs, choose_card, (cards.visible(),)) as pool:
        done = pool.imap_unordered(work, todo)
        for number in range(len(todo)):
            try:
                path, seconds, wrong = done.next(
                    timeout=max(1.0, options.seconds - (time.monotonic() - begun))
                )
            except multiprocessing.TimeoutError:
                print("time is up; the runs in flight resume next time")
                break
            clock = time.monotonic() - begun
            print(f"{number + 1}/{len(todo)} {clock:6.0f} s  {path}  {seconds:.0f} s {wrong}", flush=True)
        pool.terminate()
    print(table(root).round(1).to_string())


if __name__ == "__main__":
    main()
