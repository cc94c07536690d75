"""What run.json records: the data, the size of the model, the training, and the placement of the backbone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from tailprompt.components.run import Run
from tailprompt.data.prepared import Prepared
from tailprompt.data.report import content
from tailprompt.errors import BadInput
from tailprompt.files import read_json
from tailprompt.inputs.examples import Split
from tailprompt.machine.clock import Spent
from tailprompt.model.backbones import Backbone, VisionBackbone
from tailprompt.model.compose import Model
from tailprompt.tasks.registry import told
from tailprompt.tasks.task import Task
from tailprompt.training.state import Progress


def about_data(prepared: Prepared, splits: dict[str, Split]) -> dict:
    """What run.json records of the data."""
    path, table = prepared.path, prepared.table
    return {
        "classes": prepared.classes,
        "words": prepared.words,
        "data": {
            "path": str(path),
            **prepared.digests,
            "rows": {split: len(part) for split, part in splits.items()},
            "pair": "pair" in table,
            "choices": "choices" in table,
            "task": told(table),
            **({"sets": prepared.sets} if prepared.sets else {}),
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


def about_training(
    progress: Progress,
    run: Run,
    prepared: Prepared,
    dev: dict[str, float],
    *,
    predicting: Spent,
    tau: float,
    threshold: float | None,
    start: Path | None,
) -> dict:
    """What run.json says of training and of what was chosen.

    dev: the scores on it. predicting: what the predictions on test took. threshold: the task's,
    if it has one. start: the folder of the run that it begins from.
    """
    return {
        "steps": progress.step,
        "best_step": progress.best_step,
        "selection_split": selection_split(run, prepared, start),
        "dev": dev,
        "tau": tau,
        **({} if threshold is None else {"threshold": threshold}),
        "micro_batch": progress.micro,
        "training_seconds": round(progress.seconds, 2),
        "prediction_seconds": round(predicting.seconds, 4),
        "prediction_cpu_seconds": round(predicting.cpu_seconds, 4),
    }


def selection_split(run: Run, prepared: Prepared, start: Path | None) -> str:
    """The split that chose the weights; a data set for test alone has those of the run that it evaluates.

    It is test, whatever its name, where all rows of dev are rows of test.
    """
    if run.training is None and start:
        return read_json(start / "run.json", "selection_split")["selection_split"]
    if run.select == "last":
        return "none"
    whole = content(prepared.table)
    dev, test = (whole[prepared.parts[split].index] for split in ("dev", "test"))
    return "test" if dev.isin(set(test)).all() else "dev"


def learned(prepared: Prepared, run: Run, start: Path | None, task: Task) -> list[str]:
    """The classes that the model has; those of the run at `start` where a data set of tags only tests it.

    They come first in that data set, which may have more. Raises BadInput where they do not.
    """
    if run.training or not start or task.unit != "token":
        return prepared.classes
    theirs = read_json(start / "run.json", "classes")["classes"]
    if prepared.classes[: len(theirs)] != theirs:
        raise BadInput(f"{prepared.path} numbers its classes otherwise than {start} does; prepare it again")
    return theirs


def about_cards(backbone: Backbone | VisionBackbone) -> dict:
    """What run.json records of a backbone that is spread over several GPUs: the device of each part."""
    placed = getattr(backbone, "device_map", None)
    return {"device_map": placed} if placed else {}


@contextmanager
def finished(run: Path) -> Iterator[None]:
    """What a folder's run.json lacks becomes a sentence about the folder."""
    try:
        yield
    except BadInput as error:
        raise BadInput(
            f"{run} is not the folder of a finished run ({error}); such are "
            "results/<scale>/runs/<protocol>/<backbone>/<dataset>/<method>/<seed>"
        ) from None
