"""The predictions of a run with the columns of the data that its task needs to score them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tailprompt.files import read_parquet
from tailprompt.plan.places import brought
from tailprompt.tasks.registry import recorded
from tailprompt.tasks.task import SCORES


def answers(folder: Path, data: Path, report: dict) -> pd.DataFrame:
    """The id, the split and the columns that the task reads, for the dev and test examples of a run.

    folder: of the run. data: the Parquet file of the data set. report: what `prepare` wrote about it. The
    predictions of a run from a bundle are decided and have no scores.
    """
    predicted, beside = recorded(report).reads(report)
    predicted = [name for name in predicted if name != SCORES or not brought(folder)]
    table = read_parquet(folder / "predictions.parquet", "id", "split", *predicted)
    if not beside:
        return table
    known = read_parquet(data, "id", *beside).set_index("id")
    return table.assign(**{column: table["id"].map(known[column]) for column in beside})
