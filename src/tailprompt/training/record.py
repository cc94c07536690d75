"""What run.json records: the data, the size of the model, the training, and the placement of the backbone."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tailprompt.components.run import Run
from tailprompt.data.prepared import Prepared
from tailprompt.files import read_json, sha256
from tailprompt.inputs.encode import Examples
from tailprompt.inputs.images import Images
from tailprompt.model.backbones import Backbone, VisionBackbone
from tailprompt.model.compose import Model
from tailprompt.tasks.registry import told
from tailprompt.training.state import Progress


def about_data(prepared: Prepared, splits: dict[str, Examples | Images]) -> dict:
    """What run.json records of the data."""
    path, table = prepared.path, prepared.table
    return {
        "classes": prepared.classes,
        "words": prepared.words,
        "data": {
            "path": str(path),
            "sha256": sha256(path),
            "rows": {split: len(part) for split, part in splits.items()},
            "pair": "pair" in table,
            "choices": "choices" in table,
            "task": told(table),
            **decoding(path, table),
        },
        "truncated": {split: part.truncated for split, part in splits.items()},
    }


def decoding(path: Path, table: pd.DataFrame) -> dict[str, dict]:
    """How the images of a data set were decoded, so that new images can be too; empty for texts."""
    return {"decoded": read_json(path.with_suffix(".json")).get("decoded")} if "image" in table else {}


def about_size(model: Model) -> dict[str, int]:
    """What run.json records of the model: its trainable parameters, those of the head, and all parameters."""
    return {
        "trainable": sum(value.numel() for value in model.parameters() if value.requires_grad),
        "trainable_head": sum(value.numel() for value in model.head.parameters() if value.requires_grad),
        "total": sum(value.numel() for value in model.parameters()),
    }


def about_training(progress: Progress, run: Run, dev: dict[str, float], tau: float) -> dict:
    """What run.json records of training and selection. dev: the scores on dev. tau: the exponent chosen."""
    return {
        "steps": progress.step,
        "best_step": progress.best_step,
        "selection_split": "none" if run.select == "last" else "dev",
        "dev": dev,
        "tau": tau,
        "micro_batch": progress.micro,
        "training_seconds": round(progress.seconds, 2),
    }


def about_cards(backbone: Backbone | VisionBackbone) -> dict:
    """What run.json records of a backbone that is spread over several GPUs: the device of each part."""
    placed = getattr(backbone, "device_map", None)
    return {"device_map": placed} if placed else {}
