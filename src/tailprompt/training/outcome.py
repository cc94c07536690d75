"""What a run leaves for scores, tables, figures and later runs, each file written whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tailprompt.files import whole
from tailprompt.inputs.encode import Examples
from tailprompt.inputs.images import Images
from tailprompt.model.compose import ImageModel, Model
from tailprompt.training.batches import predict
from tailprompt.training.state import Progress


@torch.no_grad()
def chosen_prompts(
    model: Model | ImageModel, splits: dict[str, Examples | Images], settings: dict
) -> dict[str, list] | None:
    """The group prompts of each example of dev and test, the best first, where the tuner has a pool."""
    if settings["tuner"] != "group_prompts":
        return None
    return {
        split: predict(model, splits[split], precision=settings["precision"], apply=model.chosen)
        .long()
        .tolist()
        for split in ("dev", "test")
        if len(splits[split])
    }


def write_predictions(
    path: Path,
    logits: dict[str, Tensor],
    splits: dict[str, Examples | Images],
    prompts: dict[str, list] | None,
) -> None:
    """id, split, label, prediction and logits per class (float16), dev then test; chosen group prompts."""
    parts = [
        pd.DataFrame(
            {
                "id": splits[split].names,
                "split": split,
                "label": splits[split].labels.cpu().numpy(),
                "prediction": value.argmax(-1).numpy(),
                "scores": list(value.numpy().astype(np.float16)),
                **({"prompts": prompts[split]} if prompts else {}),
            }
        )
        for split, value in logits.items()
    ]
    with whole(path) as temporary:
        pd.concat(parts, ignore_index=True).to_parquet(temporary, index=False)


def asked_features(
    model: Model | ImageModel,
    test: Examples | Images,
    as_judged: Callable[[], Examples | Images],
    classes: list[str],
    settings: dict,
) -> pd.DataFrame:
    """Feature vectors that a table or figure asks for: of some classes in test, or of all in train and test.

    as_judged: makes the training examples as dev and test are seen, without augmentation.
    """
    if settings.get("vectors"):
        seen = {"train": as_judged(), "test": test}
        every = range(len(classes))
        return pd.concat([features_of(model, part, split, every) for split, part in seen.items()])
    return features_of(model, test, "test", [classes.index(name) for name in settings.get("features", [])])


def features_of(
    model: Model | ImageModel, examples: Examples | Images, split: str, classes: Sequence[int]
) -> pd.DataFrame:
    """id, split, label and feature vector of the examples of some classes."""
    labels = examples.labels.cpu().numpy()
    chosen = np.flatnonzero(np.isin(labels, list(classes)))
    vectors = predict(model, examples, apply=model.features).numpy()[chosen] if len(chosen) else []
    return pd.DataFrame(
        {
            "id": [examples.names[i] for i in chosen],
            "split": split,
            "label": labels[chosen],
            "vector": list(vectors),
        }
    )


def write_features(path: Path, table: pd.DataFrame) -> None:
    """What figures show besides predictions: feature vectors, of which there may be none."""
    with whole(path) as temporary:
        table.to_parquet(temporary, index=False)


def write_curve(path: Path, progress: Progress) -> None:
    with whole(path) as temporary:
        pd.DataFrame(progress.curve).to_csv(temporary, index=False)
