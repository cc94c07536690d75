"""Whether predictions are of one class alone, or nearly so that their score says nothing of a method."""

from __future__ import annotations

import pandas as pd

MOST = 0.95  # share of the predictions, from which on they are nearly all of one class
APART = 0.2  # by which the share of that class among the labels is lower, where others are named too


def one_class(rows: pd.DataFrame) -> tuple[int, float] | None:
    """The only class that examples of several are said to be of, and its share of the predictions.

    rows: the label and prediction of each example. None where other classes are named as well, and where
    predictions are no ids.
    """
    if "prediction" not in rows or rows["prediction"].dtype.kind not in "iu" or rows["label"].nunique() < 2:
        return None
    counts = rows["prediction"].value_counts()
    only, share = int(counts.index[0]), counts.iloc[0] / len(rows)
    nearly = share >= MOST and (rows["label"] == only).mean() <= share - APART
    return (only, float(share)) if share == 1 or nearly else None
