"""Score a run from its predictions, or the runs of a scale in one long table.

    python -m tailprompt.score --run FOLDER --data DATA.json           writes FOLDER/scores.parquet
    python -m tailprompt.score --collect results/<scale> --asked FILE  writes results/<scale>/scores.parquet

Both are for people: tables and figures compute the scores that they show themselves. The long table has the
runs that FILE lists; one that is damaged or not what is asked is refused, and others on disk are not read.
Scores are never computed on part of a split: the predictions must have exactly the ids and labels of the
prepared data.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from tailprompt.errors import BadInput, stage
from tailprompt.files import json_option, read_json, whole
from tailprompt.plan import agreement, either
from tailprompt.plan.places import report_file
from tailprompt.plan.points import Point
from tailprompt.report.answers import answers
from tailprompt.report.options import taken
from tailprompt.seals import seal
from tailprompt.tasks.registry import recorded
from tailprompt.tasks.task import scores

COORDINATES = ("protocol", "backbone", "dataset", "method", "seed")
SCHEMA = {"split": "string", "metric": "string", "group": "string", "value": "float64"}


def scores_of(run: Path, data: Path) -> pd.DataFrame:
    """The scores on dev and test of the run in a folder, with columns split, metric, group and value.

    data: the report (.json) of its data set, beside the Parquet file. Raises BadInput without any rows.
    """
    report = read_json(data, "classes", "groups")
    rows = [
        (split, *line)
        for split, part in answers(run, data.with_suffix(".parquet"), report).items()
        if len(part)
        for line in scores(recorded(report), part, report, report["groups"][split])
    ]
    if not rows:
        raise BadInput(f"{run}: the data have neither dev nor test rows to score")
    return pd.DataFrame(rows, columns=list(SCHEMA)).astype(SCHEMA)


def score_run(run: Path, data: Path) -> None:
    """Write `scores.parquet` into the folder of a run. data: the report (.json) of its data set."""
    record = read_json(run / "run.json")
    agreement.check(run, record)
    with whole(run / "scores.parquet") as temporary:
        scores_of(run, data).to_parquet(temporary, index=False)


def collect(root: Path, runs: Iterable[str]) -> pd.DataFrame:
    """The scores of runs in `root`, with each run's coordinates and selected step.

    runs: their paths below `root`/runs. Raises BadInput without any, and for one that is damaged or not what
    is asked.
    """
    parts = []
    for point in map(Point.at, runs):
        folder = either.run_folder(root, point)
        run = read_json(folder / "run.json")
        agreement.check(folder, run)
        extra = {key: run.get(key) for key in ("trainable", "best_step")}
        extra["selection_split"] = run.get("selection_split", "dev")
        table = scores_of(folder, report_file(root, point.dataset))
        parts.append(table.assign(**asdict(point), **extra))
    if not parts:
        raise BadInput(f"{root}: no run is listed to score")
    types = {name: "string" for name in COORDINATES} | {
        "seed": "int64",
        "trainable": "Int64",
        "best_step": "Int64",
    }
    table = pd.concat(parts, ignore_index=True).astype(types)
    return table[[*COORDINATES, "selection_split", "trainable", "best_step", *SCHEMA]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt score", description=__doc__.split("\n")[0])
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="folder of the run to score")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help="report of its data set: results/<scale>/data/<dataset>.json, beside the Parquet file",
    )
    parser.add_argument(
        "--collect", type=Path, metavar="ROOT", help="folder of a scale, results/<scale>, whose runs to score"
    )
    parser.add_argument(
        "--asked",
        metavar="FILE",
        help="with --collect: what snakemake asks, which lists the runs: results/<scale>/asked/scores.json",
    )
    chosen = parser.parse_args()
    if chosen.collect and chosen.asked:
        made_of = taken(chosen.collect, chosen.asked)
        table = collect(chosen.collect, json_option(chosen.asked, "--asked", "runs")["runs"])
        with whole(chosen.collect / "scores.parquet") as temporary:
            table.to_parquet(temporary, index=False)
        seal(chosen.collect / "scores.parquet", also=made_of)
    elif chosen.run and chosen.data:
        score_run(chosen.run, chosen.data)
    else:
        parser.error("give either --run with --data, or --collect with --asked")


if __name__ == "__main__":
    stage(main)
