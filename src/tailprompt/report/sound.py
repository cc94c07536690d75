"""Whether what a run wrote is what tables, figures and the plan can read; a bundle holds no other runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.errors import BadInput
from tailprompt.files import keyed, reading

COUNTED = ("seconds", "trainable", "total", "best_step")  # numbers that each run.json has
SPENT = ("cpu_seconds", "memory_mb", "training_seconds", "prediction_seconds", "prediction_cpu_seconds")
COUNTED_TOO = (*SPENT, "steps", "trainable_head", "micro_batch")
EVALUATED = ("step", "loss")  # columns of a curve that has a line


def check_record(file: Path, record: dict) -> None:
    """Raise BadInput unless a run.json has its settings, and numbers where it counts."""
    keyed(record, file, "point", "data", "settings", *COUNTED)
    keyed(record["settings"], f"{file}: settings")
    for key in (*COUNTED, *COUNTED_TOO):
        if not is_number(record.get(key, 0)) or record.get(key, 0) < 0:
            raise BadInput(f"{file}: {key} is {record[key]!r}, not a number from 0")


def check_answers(
    file: Path, rows: pd.DataFrame, gold: str, outputs: int, *, answered: str = "prediction"
) -> None:
    """Raise BadInput unless predictions are ids below `outputs` where the data's labels are ids.

    gold: the column of the labels, which are an id or a list of ids, of which predictions then have as many;
    answers in words are not looked at.
    """
    if answered not in rows or not of_ids(rows[gold]):
        return
    if not of_ids(rows[answered]) or (rows[gold].dtype == object) != (rows[answered].dtype == object):
        raise BadInput(f"{file}: its column {answered} does not hold ids of classes, as {gold} does")
    if rows[gold].dtype == object:
        odd = rows[answered].map(len) != rows[gold].map(len)
        if odd.any():
            guess, tags, where = rows.loc[odd, [answered, gold, "id"]].iloc[0]
            raise BadInput(f"{file}: id '{where}' has {len(guess)} predictions, and must have {len(tags)}")
    ids = flat(rows[answered])
    if odd := sorted({*ids[(ids < 0) | (ids >= outputs)].tolist()}):
        raise BadInput(f"{file}: predicts {odd[0]}, which is no class; ids go from 0 to {outputs - 1}")


def of_ids(column: pd.Series) -> bool:
    """Whether a column holds whole numbers, or lists of them."""
    return flat(column).dtype.kind in "iu"


def flat(column: pd.Series) -> np.ndarray:
    """The values of a column, those of its lists one after another; an empty column has ids."""
    if column.dtype != object:
        return column.to_numpy()
    lists = [each for each in column if isinstance(each, np.ndarray) and len(each)]
    words = len(column) and not isinstance(column.iloc[0], np.ndarray)
    return np.array(["words"]) if words else np.concatenate(lists or [np.zeros(0, int)])


def check_summary(file: Path, summary: Mapping, outputs: Iterable[int]) -> None:
    """Raise BadInput unless norms are finite and one for each of the classes, and sizes are whole numbers.

    outputs: the numbers of norms that there may be.
    """
    norms, sizes = summary["norms"], summary["sizes"]
    if norms is not None:
        if not isinstance(norms, list) or not all(is_number(each) and each >= 0 for each in norms):
            raise BadInput(f"{file}: norms are not finite numbers from 0")
        if len(norms) not in outputs:
            raise BadInput(f"{file}: {len(norms)} norms, and must have {min(outputs)}, one an output")
    named = keyed(sizes, f"{file}: sizes").values()
    if not all(type(each) is int and each >= 0 for each in named):
        raise BadInput(f"{file}: sizes are not whole numbers from 0")


def check_curve(file: Path) -> None:
    """Raise BadInput unless a curve has numbers in each cell, or nothing where a score is undefined."""
    with reading(file):
        text = file.read_text("utf-8")
        header, *lines = list(csv.reader(io.StringIO(text), strict=True)) or [[]]
        numbers = [[float(cell or "nan") for cell in line] for line in lines]
    if lines and not set(EVALUATED) <= set(header) or any(len(line) != len(header) for line in numbers):
        raise BadInput(f"{file} is not a table with {' and '.join(EVALUATED)} and a number in each cell")


def check_vectors(file: Path, table: pd.DataFrame) -> None:
    """Raise BadInput unless the feature vectors are finite and of one width."""
    with reading(file):
        vectors = np.stack(table["vector"]).astype(float) if len(table) else np.zeros(0)
        finite = bool(np.isfinite(vectors).all())
    if not finite:
        raise BadInput(f"{file}: its vectors are not finite")


def is_number(value) -> bool:
    """Whether JSON's value is a finite number."""
    return type(value) in (int, float) and -inf < value < inf
