"""Score a run from its predictions, or collect the scores of all runs of a scale into one long table.

    python -m tailprompt.score --run FOLDER --data DATA.json     writes FOLDER/scores.parquet
    python -m tailprompt.score --collect results/<scale>         writes results/<scale>/scores.parquet

Scores are never computed on part of a split: the predictions must have exactly the ids and labels of the
prepared data.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from tailprompt.errors import BadInput, stage
from tailprompt.files import read_json, read_parquet, whole
from tailprompt.plan import agreement
from tailprompt.report.answers import answers
from tailprompt.report.scored import SCHEMA, score
from tailprompt.tasks.registry import recorded

COORDINATES = ("protocol", "backbone", "dataset", "method", "seed")


def score_run(run: Path, data: Path) -> None:
    """Write `scores.parquet` into the folder of a run. data: the report (.json) of its data set."""
    agreement.check(run, read_json(run / "run.json"))
    report = read_json(data, "classes", "groups")
    table = read_parquet(data.with_suffix(".parquet"), "id", "split", recorded(report).gold)
    predictions = answers(run, data.with_suffix(".parquet"), report)
    scored = score(predictions, table, report, run / "predictions.parquet")
    with whole(run / "scores.parquet") as temporary:
        scored.to_parquet(temporary, index=False)


def collect(root: Path) -> pd.DataFrame:
    """The scores of all runs below `root`/runs, with each run's coordinates and selected step."""
    files = sorted(root.glob("runs/*/*/*/*/*/scores.parquet"))
    if not files:
        raise BadInput(f"{root}/runs: no run has scores yet")
    parts = []
    for file in files:
        run = read_json(file.parent / "run.json")
        extra = {"trainable": run.get("trainable"), "best_step": run.get("best_step")}
        place = dict(zip(COORDINATES, file.parts[-6:-1], strict=True)) | extra
        place["selection_split"] = run.get("selection_split", "dev")
        parts.append(read_parquet(file, *SCHEMA).assign(**place))
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
        "--collect",
        type=Path,
        metavar="ROOT",
        help="folder of a scale, results/<scale>, whose runs' scores to collect",
    )
    chosen = parser.parse_args()
    if chosen.collect:
        table = collect(chosen.collect)
        with whole(chosen.collect / "scores.parquet") as temporary:
            table.to_parquet(temporary, index=False)
    elif chosen.run and chosen.data:
        score_run(chosen.run, chosen.data)
    else:
        parser.error("give either --run with --data, or --collect")


if __name__ == "__main__":
    stage(main)
