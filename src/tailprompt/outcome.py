"""What a run leaves for scores, tables, figures and later runs, each file written whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save_file
from torch import Tensor

from tailprompt.compose import ImageModel, Model
from tailprompt.encode import Examples
from tailprompt.files import whole
from tailprompt.images import Images
from tailprompt.loop import Progress, predict


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


def write_weights(path: Path, model: Model | ImageModel, settings: dict) -> None:
    """The class vectors and what was trained; of a fully tuned body only with `keep`.

    What began in another run is trained too: all of a text model, all but the ViT's own of an image model.
    """
    kept = model.own if isinstance(model, ImageModel) else model.own(started=bool(settings["start"]))
    bulky = settings["tuner"] == "full" or settings["input"] != "pixels"
    if bulky and not settings["keep"] and settings["tuner"] != "soft_prompt":
        kept = {name for name in kept if name.startswith("head.")}
    tensors = {name: value.detach() for name, value in model.named_parameters() if name in kept}
    tensors["class_vectors"] = model.head.class_vectors().detach()
    with whole(path) as temporary:
        save_file({name: value.cpu().contiguous().clone() for name, value in tensors.items()}, temporary)


def write_curve(path: Path, progress: Progress) -> None:
    with whole(path) as temporary:
        pd.DataFrame(progress.curve).to_csv(temporary, index=False)
