"""Choice: each example has its own options, and its label is the number of the right one (PPT's RACE, C3).

Rows differ in their number of options. The classes are the letters of the options. Scores are computed as in
classification, because a model never predicts an option that a row lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from tailprompt.tasks import classification
from tailprompt.tasks.task import Given

COLUMN, TEXT = "choices", "prediction_text"


def shown(
    logits: np.ndarray, given: Given, rows: pd.DataFrame, classes: Sequence[str]
) -> dict[str, np.ndarray]:
    """The letters of the most probable options among those that a row has, and the text of the best."""
    letters = logits[:, : len(classes)]
    lacks = np.arange(letters.shape[1]) >= rows[COLUMN].map(len).to_numpy()[:, None]
    made = classification.shown(np.where(lacks, -np.inf, letters), given, rows, classes)
    best = [
        offered[list(classes).index(letter)]
        for offered, letter in zip(rows[COLUMN], made["prediction"], strict=True)
    ]
    return made | {TEXT: np.array(best, dtype=object)}


CHOICE = replace(
    classification.CLASSIFICATION,
    told_by=COLUMN,
    metrics=("accuracy", "precision", "recall", "f1"),  # the balance of letters says nothing
    ranks=(),
    shown_as=(*classification.CLASSIFICATION.shown_as, TEXT),
    shown=shown,
)
