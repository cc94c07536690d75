"""What a run answered: of each prediction what its task reads, beside what it reads of the data's rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tailprompt.files import read_parquet
from tailprompt.tasks.registry import recorded


def answers(folder: Path, data: Path, report: dict) -> pd.DataFrame:
    """id, split and what the task reads of a run's dev and test examples.

    data: the Parquet of the data set, report: what `prepare` wrote of it.
    """
    predicted, beside = recorded(report).reads(report)
    table = read_parquet(folder / "predictions.parquet", "id", "split", *predicted)
    if not beside:
        return table
    known = read_parquet(data, "id", *beside).set_index("id")
    return table.assign(**{column: table["id"].map(known[column]) for column in beside})
