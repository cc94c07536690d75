"""The predictions of a run as its task scores them, checked against the prepared data."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.errors import BadInput, counted
from tailprompt.files import read_parquet
from tailprompt.plan.places import brought
from tailprompt.tasks.registry import recorded
from tailprompt.tasks.task import SCORES

SPLITS = ("dev", "test")


def answers(folder: Path, data: Path, report: dict) -> dict[str, pd.DataFrame]:
    """Dev and test -> the ids, and the columns that the task reads, of their examples.

    folder: of the run; from a bundle it has no scores of classes, as its predictions are decided. data: the
    Parquet file of the data set. report: what `prepare` wrote about it. Raises BadInput unless each example
    of both splits is predicted exactly once, with its label. Results that were copied here without their data
    are not compared.
    """
    task, place = recorded(report), folder / "predictions.parquet"
    predicted, beside = task.reads(report)
    if brought(folder) and report.get("ranked"):
        raise BadInput(f"{folder}: average_precision needs the scores of all classes, which no bundle has")
    predicted = [name for name in predicted if name != SCORES or not brought(folder)]
    parts = by_split(read_parquet(place, *dict.fromkeys(["id", "split", task.gold, *predicted])))
    if not beside and not data.is_file():
        return parts
    rows = prepared(data, data.stat().st_mtime_ns, task.gold, *beside)
    return {split: joined(parts[split], rows[split], task.gold, split, place) for split in SPLITS}


@cache
def prepared(data: Path, _time: int, *columns: str) -> dict[str, pd.DataFrame]:
    """Split -> ids and `columns` of a data set, read once for all runs of a table."""
    return by_split(read_parquet(data, "id", "split", *columns))


def by_split(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of dev and test."""
    return {split: table[table["split"] == split] for split in SPLITS}


def joined(predicted: pd.DataFrame, rows: pd.DataFrame, gold: str, split: str, place: Path) -> pd.DataFrame:
    """The predictions of a split with the columns that only the data have.

    Raises BadInput if their ids or labels differ.
    """
    if len(predicted) != len(rows):
        raise BadInput(
            f"{place}: {counted(len(predicted), f'{split} prediction')} for the "
            f"{counted(len(rows), f'{split} row')} of the data"
        )
    if not np.array_equal(predicted["id"], rows["id"]):  # training keeps the order of the data
        predicted, rows = predicted.sort_values("id"), rows.sort_values("id")
    odd = predicted["id"].to_numpy() != rows["id"].to_numpy()
    if odd.any():
        raise BadInput(
            f"{place}: {split} id '{predicted['id'][odd].iloc[0]}' is not in the data, or there twice"
        )
    wrong = plain(predicted[gold]) != plain(rows[gold])
    if wrong.any():
        example = predicted["id"][wrong].iloc[0]
        raise BadInput(f"{place}: the label of {split} id '{example}' differs from the data's")
    others = {name: rows[name].to_numpy() for name in rows if name not in predicted}
    return predicted.assign(**others) if others else predicted


def plain(labels: pd.Series) -> np.ndarray:
    """Labels that compare as one value each; lists become tuples."""
    return (labels.map(tuple) if labels.dtype == object else labels).to_numpy()
