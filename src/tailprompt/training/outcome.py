"""The files that a run writes for scores, tables, figures and later runs, each atomically."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tailprompt.components.run import Run
from tailprompt.errors import BadInput
from tailprompt.files import whole
from tailprompt.inputs.examples import Split
from tailprompt.model.compose import Model
from tailprompt.tasks.task import SCORES, Task
from tailprompt.training.batches import predict
from tailprompt.training.selection import given
from tailprompt.training.state import Progress


@torch.no_grad()
def chosen_prompts(model: Model, splits: dict[str, Split], run: Run) -> dict[str, list] | None:
    """The group prompts of each example of dev and test, the best first; None if the tuner has no pool."""
    if run.tuner.name != "group_prompts":
        return None
    return {
        split: predict(model, splits[split], precision=run.precision, apply=model.chosen).long().tolist()
        for split in ("dev", "test")
        if len(splits[split])
    }


def write_predictions(
    path: Path,
    logits: dict[str, Tensor],
    splits: dict[str, Split],
    prompts: dict[str, list] | None,
    task: Task,
    threshold: float | None,
    *,
    exact: bool = False,
) -> pd.DataFrame:
    """Write and return the predictions, dev before test: id, split, the task's columns, and group prompts.

    Scores are rounded to float16, after the prediction is made of them. exact: whether they stay in float32,
    for a data set on which a prediction is chosen of them again, among some classes. Raises BadInput if
    logits are not finite, or scores too large for float16.
    """
    parts = []
    for split, value in logits.items():
        there = given(splits[split], threshold)
        check_finite(value, splits[split].names, f"logits of {split} example")
        columns = {"id": there.ids, "split": split, **task.row(value.numpy(), there)}
        if SCORES in columns and not exact:
            with np.errstate(over="ignore"):  # which the check names
                scores = np.stack(columns[SCORES]).astype(np.float16)
            check_finite(torch.from_numpy(scores), there.ids, f"scores in float16 of {split} example")
            columns[SCORES] = list(scores)
        parts.append(pd.DataFrame(columns | ({"prompts": prompts[split]} if prompts else {})))
    rows = pd.concat(parts, ignore_index=True)
    with whole(path) as temporary:
        rows.to_parquet(temporary, index=False)
    return rows


def check_finite(values: Tensor, names: Sequence[str], what: str) -> None:
    """Raise BadInput with the first example `[examples, ...]` whose values are not finite."""
    finite = values.isfinite().flatten(1).all(1)
    if not finite.all():
        name = names[int(finite.int().argmin())]
        raise BadInput(
            f"training has diverged: {what} {name} are not finite; lower lr, or look at this example"
        )


def asked_features(
    model: Model, test: Split, as_evaluated: Callable[[], Split], classes: list[str], extras: dict
) -> pd.DataFrame:
    """The feature vectors that a table or figure needs: of some classes in test, or of all train and test.

    as_evaluated: returns the training examples without augmentation, as dev and test are evaluated.
    """
    if extras.get("vectors"):
        seen = {"train": as_evaluated(), "test": test}
        every = range(len(classes))
        return pd.concat([features_of(model, part, split, every) for split, part in seen.items()])
    return features_of(model, test, "test", [classes.index(name) for name in extras.get("features", [])])


def features_of(model: Model, examples: Split, split: str, classes: Sequence[int]) -> pd.DataFrame:
    """The id, split, label and feature vector of each example of some classes."""
    labels = examples.labels.cpu().numpy()
    chosen = np.flatnonzero(np.isin(labels, list(classes)))
    names = [examples.names[i] for i in chosen]
    vectors = predict(model, examples, apply=model.features)[chosen] if len(chosen) else torch.empty(0, 0)
    check_finite(vectors, names, f"features of {split} example")
    return pd.DataFrame(
        {"id": names, "split": split, "label": labels.ravel()[chosen], "vector": list(vectors.numpy())}
    )


def write_features(path: Path, table: pd.DataFrame) -> None:
    """Write the feature vectors, of which there may be none."""
    with whole(path) as temporary:
        table.to_parquet(temporary, index=False)


def write_curve(path: Path, progress: Progress) -> None:
    """Write the loss and scores of each evaluation."""
    with whole(path) as temporary:
        pd.DataFrame(progress.curve).to_csv(temporary, index=False)
