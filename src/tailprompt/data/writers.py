"""Rows written as CSV, TSV, JSON Lines or Parquet, so that a reader gets each value and each row back."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

HELD = list, tuple, set, frozenset, np.ndarray, Mapping


def write_separated(table: pd.DataFrame, path: Path, *, mark: str) -> None:
    """CSV or TSV, with lists and objects as JSON.

    Texts are all quoted where one has a carriage return: it ends a row, and Python's writer leaves it bare.
    """
    plain = {n: one_a_cell(table.iloc[:, n]) for n in range(table.shape[1])}
    frame = pd.DataFrame(plain, index=table.index).set_axis(table.columns, axis=1)
    returns = any("\r" in cell for n in frame for cell in (*frame[n], n) if isinstance(cell, str))
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    frame.to_csv(path, index=False, sep=mark, quoting=quoting)


def one_a_cell(cells: pd.Series) -> pd.Series:
    """Cells as CSV holds them. Other dtypes than object hold no lists."""
    if cells.dtype != object:
        return cells
    # not Series.map, which makes whole numbers beside an empty cell floats
    shown = [json_text(cell) if isinstance(cell, HELD) else cell for cell in cells]
    return pd.Series(shown, index=cells.index, dtype=object)


def write_json(table: pd.DataFrame, path: Path) -> None:
    """JSON Lines: an object a row, null for no value. (pandas rounds numbers and counts dates in ms.)"""
    columns = [list(table.iloc[:, n].astype(object)) for n in range(table.shape[1])]
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for row in zip(*columns, strict=True):
            file.write(json_text(dict(zip(table.columns, row, strict=True))) + "\n")


def json_text(value) -> str:
    """A value as JSON."""
    return json.dumps(of_json(value), ensure_ascii=False, allow_nan=False)


def of_json(value):
    """A value as JSON has it: a date in ISO's form, a number that is none as null."""
    if isinstance(value, Mapping):
        return {key: of_json(inside) for key, inside in value.items()}
    if isinstance(value, HELD):
        return [of_json(inside) for inside in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value != value:
        return None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else value


WRITERS = {
    "csv": partial(write_separated, mark=","),
    "tsv": partial(write_separated, mark="\t"),
    "jsonl": write_json,
    "parquet": lambda table, path: table.to_parquet(path, index=False),
}
