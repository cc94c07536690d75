"""The predictions of a run as its task scores them, checked against the prepared data."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from tailprompt.errors import BadInput, counted
from tailprompt.files import read_parquet, reading
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
    columns = dict.fromkeys(["id", "split", task.gold, *predicted])
    if not beside and not data.is_file():
        return by_split(read_parquet(place, *columns))
    with reading(place), parquet.ParquetFile(place) as file:  # takes half the time of `read_table`
        table = file.read(columns=list(columns)).select(list(columns))
        told = table.select(["id", "split", task.gold])
    rows = prepared(data, data.stat().st_mtime_ns, tuple(told.schema.types), task.gold, *beside)
    if told.equals(rows.told):
        own = {name: table[name].to_numpy() for name in columns if name not in told.column_names}
        return {
            split: part.assign(**{name: values[part.index] for name, values in own.items()})
            for split, part in rows.parts.items()
        }
    parts = by_split(read_parquet(place, *columns))
    return {split: joined(parts[split], rows.parts[split], task.gold, split, place) for split in SPLITS}


@dataclass(frozen=True)
class Rows:
    """What the predictions of all runs on a data set share: dev, then test, in the order of the data."""

    told: pa.Table  # id, split and label, which predictions repeat
    parts: dict[str, pd.DataFrame]  # split -> ids and columns; the index is the place in `told`


@cache
def prepared(data: Path, _time: int, types: tuple[pa.DataType, ...], gold: str, *beside: str) -> Rows:
    """The rows of a data set, read once for all runs of a table whose predictions have these types."""
    rows = pd.concat(by_split(read_parquet(data, "id", "split", gold, *beside)).values(), ignore_index=True)
    told = pa.Table.from_pandas(rows[["id", "split", gold]], preserve_index=False)
    alike = [
        theirs if kind(theirs) == kind(ours) else ours
        for ours, theirs in zip(told.schema.types, types, strict=True)
    ]
    with suppress(pa.ArrowInvalid):  # labels that this type does not hold are other labels
        told = told.cast(pa.schema(zip(told.column_names, alike, strict=True)))
    return Rows(told, by_split(rows.assign(**{gold: told[gold].to_pandas()})))


def kind(type_: pa.DataType) -> object:
    """A type without its size. Values of two kinds, as 1, "1" and true, are not equal."""
    if pa.types.is_signed_integer(type_):
        return "integer"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return "text"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return "list", kind(type_.value_type)
    return type_


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
