"""Score a run from its predictions, or all runs of a scale in one long table.

    python -m tailprompt.score --run FOLDER --data DATA.json     writes FOLDER/scores.parquet
    python -m tailprompt.score --collect results/<scale>         writes results/<scale>/scores.parquet

Both are for people: tables and figures compute the scores that they show themselves. A run that --spec lists
is refused if it is damaged or not what is asked; any other such run is left out. Scores are never computed on
part of a split: the predictions must have exactly the ids and labels of the prepared data.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pandas as pd

from tailprompt.errors import BadInput, stage
from tailprompt.files import json_option, read_json, seal, whole
from tailprompt.plan import agreement, either
from tailprompt.plan.places import BUNDLED, report_file
from tailprompt.report.answers import answers
from tailprompt.report.options import taken
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


def collect(root: Path, needed: Collection[str] = ()) -> pd.DataFrame:
    """The scores of the runs below `root`/runs, with each run's coordinates and selected step.

    needed: paths of runs that are refused, and not left out, if they are damaged or not what is asked.
    """
    parts = []
    for folder, run in finished(root, needed):
        place = dict(zip(COORDINATES, folder.parts[-5:], strict=True))
        extra = {key: run.get(key) for key in ("trainable", "best_step")}
        extra["selection_split"] = run.get("selection_split", "dev")
        table = scores_of(folder, report_file(root, place["dataset"]))
        parts.append(table.assign(**place, **extra))
    if not parts:
        raise BadInput(f"{root}/runs: no run to score yet")
    types = {name: "string" for name in COORDINATES} | {
        "seed": "int64",
        "trainable": "Int64",
        "best_step": "Int64",
    }
    table = pd.concat(parts, ignore_index=True).astype(types)
    return table[[*COORDINATES, "selection_split", "trainable", "best_step", *SCHEMA]]


def finished(root: Path, needed: Collection[str]) -> Iterator[tuple[Path, dict]]:
    """The folder and run.json of each run that is sound; others are named on standard error, or refused."""
    files = [file for base in (root, root / BUNDLED) for file in base.glob("runs/*/*/*/*/*/run.json")]
    for point in sorted({file.parts[-6:-1] for file in files}):
        folder = either.taken(root.joinpath("runs", *point))
        run = read_json(folder / "run.json")
        try:
            agreement.check(folder, run)
        except BadInput as error:
            if "/".join(point) in needed:
                raise
            print(f"left out: {error}", file=sys.stderr)
        else:
            yield folder, run


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
        default="",
        metavar="FILE",
        help="with --collect: what snakemake asks, with the runs that must not be left out",
    )
    chosen = parser.parse_args()
    if chosen.collect:
        made_of = taken(chosen.collect, chosen.asked)
        needed = json_option(chosen.asked, "--asked", "runs")["runs"] if chosen.asked else []
        table = collect(chosen.collect, set(needed))
        with whole(chosen.collect / "scores.parquet") as temporary:
            table.to_parquet(temporary, index=False)
        seal(chosen.collect / "scores.parquet", also=made_of)
    elif chosen.run and chosen.data:
        score_run(chosen.run, chosen.data)
    else:
        parser.error("give either --run with --data, or --collect")


if __name__ == "__main__":
    stage(main)
