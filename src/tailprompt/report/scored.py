"""The scores of a run from its predictions, which must be of exactly the examples of the prepared data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.errors import BadInput
from tailprompt.tasks.registry import recorded
from tailprompt.tasks.task import scores

SPLITS = ("dev", "test")
SCHEMA = {"split": "string", "metric": "string", "group": "string", "value": "float64"}


def check(predictions: pd.DataFrame, data: pd.DataFrame, gold: str, split: str, place: Path) -> None:
    """Raise BadInput unless each example of the split is predicted exactly once, with its label.

    gold: the column of labels.
    """
    predicted = predictions[predictions.split == split].set_index("id")[gold].sort_index()
    prepared = data[data.split == split].set_index("id")[gold].sort_index()
    if len(predicted) != len(prepared):
        raise BadInput(
            f"{place}: {len(predicted)} {split} predictions for the {len(prepared)} {split} rows of the data"
        )
    odd = predicted.index.to_numpy() != prepared.index.to_numpy()
    if odd.any():
        raise BadInput(f"{place}: {split} id '{predicted.index[odd][0]}' is not in the data, or there twice")
    wrong = plain(predicted) != plain(prepared)
    if wrong.any():
        example = predicted.index[wrong][0]
        raise BadInput(f"{place}: the label of {split} id '{example}' differs from the data's")


def plain(labels: pd.Series) -> np.ndarray:
    """Labels that compare as one value each; lists become tuples."""
    return (labels.map(tuple) if labels.dtype == object else labels).to_numpy()


def score(predictions: pd.DataFrame, data: pd.DataFrame, report: dict, place: Path) -> pd.DataFrame:
    """The scores of a run on dev and test, with columns split, metric, group and value.

    Raises BadInput if neither split has rows.
    """
    task, parts = recorded(report), []
    for split in SPLITS:
        check(predictions, data, task.gold, split, place)
        part = predictions[predictions.split == split]
        if len(part):
            rows = scores(task, part, report, report["groups"][split])
            parts.append(pd.DataFrame(rows, columns=["metric", "group", "value"]).assign(split=split))
    if not parts:
        raise BadInput(f"{place}: the data have neither dev nor test rows to score")
    return pd.concat(parts)[list(SCHEMA)].astype(SCHEMA)
