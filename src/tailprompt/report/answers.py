"""What a run answered: its predictions, such that a right one is the label.

On a test set of another set's classes (LPT, Tables 6 and 16) an image may have several right classes, and a
prediction may be chosen among some of the classes only.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.files import read_parquet
from tailprompt.tasks import metrics

COLUMNS = ("id", "split", "label", "prediction")


def answers(folder: Path, data: Path, report: dict) -> pd.DataFrame:
    """id, split, label and prediction of a run's examples.

    data: the Parquet of the data set, report: what `prepare` wrote of it, with `trained_on` and `among`
    (class ids, null for all) where it has another set's classes.
    """
    path = folder / "predictions.parquet"
    if "trained_on" not in report:
        return read_parquet(path, *COLUMNS)
    among = report["among"]
    table = read_parquet(path, *COLUMNS, *(["scores"] if among else []))
    right = read_parquet(data, "id", "accepted").set_index("id").accepted.to_dict()
    accepted = [right.get(name, ()) for name in table.id]
    chosen = metrics.restricted(np.stack(table.scores), among) if among else table.prediction
    return table[list(COLUMNS)].assign(prediction=metrics.folded(chosen, accepted, table.label))
