"""A small made-up data set, and one run of the training stage on it by a small random backbone."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from conftest import ROW

from tailprompt.components.inputs import FITTED as FITTED_HEADS
from tailprompt.components.resolve import composed, flat, given_to
from tailprompt.data import table as data
from tailprompt.inputs.templates import template_named
from tailprompt.plan.points import Point
from tailprompt.plan.schemas import read
from tailprompt.train import train
from tailprompt.training import loop, stopping

WORDS = {"music": "song guitar", "sport": "match goal", "law": "court judge"}
TRAINING = {
    "lr": 3e-3,
    "weight_decay": 0.0,
    "adam_eps": 1e-6,
    "clip": 1.0,
    "warmup": 0.5,
    "batch": 12,
    "epochs": 2,
    "patience": 2,
    "evaluate_every": 0,
    "select": "f1",
    "precision": "float32",
    "bucket": 1,
    "template": "{text} This is about {mask} .",
    "max_length": 24,
    "language": "en",
}
METHODS = read("config/methods.yaml")["methods"]
TEXTS = [name for name in METHODS if name.startswith(("cls-", "prompt"))]
FORMATTED = [name for name, row in METHODS.items() if row.get("input") == "formatted"]
PREFIXED = [name for name in METHODS if name.startswith(("pt2", "mpt2", "pt-input", "lora"))]
FITTED = [name for name, row in METHODS.items() if row.get("head") in FITTED_HEADS]
IMAGES = [name for name in METHODS if name not in TEXTS + FORMATTED + PREFIXED + FITTED]
READS = {name: "image" if name in IMAGES or name.startswith("image-") else "text" for name in METHODS}
WRITTEN = {"weights.safetensors", "predictions.parquet", "features.parquet", "curve.csv", "run.json"}


def table(*, pair: bool = False) -> pd.DataFrame:
    """Three classes, long-tailed, in three splits; `pair` splits a text in two."""
    draw, rows = random.Random(0), []
    for split, counts in {"train": (14, 7, 3), "dev": (6, 4, 2), "test": (9, 5, 3)}.items():
        for label, (words, n) in enumerate(zip(WORDS.values(), counts, strict=True)):
            for i in range(n):
                text = " ".join(draw.choices(words.split(), k=1 + i % 4)) + f" number {i}"
                rows.append({"id": f"{split}-{label}-{i}", "split": split, "label": label, "text": text})
    made = pd.DataFrame(rows)
    return made.assign(pair=[f"because of {label}" for label in made.label]) if pair else made


def told(method: str, given: dict, *, reads: str, form: str = "ssc", trains: bool = True, **changes) -> dict:
    """The settings of a method of config/methods.yaml over what is `given`; `changes` must be read by it.

    An empty name is a method that states nothing. form: of the texts, for a template by name. trains: False
    for a data set for test alone.
    """
    own = {key: value for key, value in METHODS.get(method, {}).items() if key not in ("title", "backbone")}
    asked = {key: value for key, value in changes.items() if key not in ("features", "vectors")}
    merged = {**given, **own, **asked}
    if "{" not in (name := merged.get("template", "{")):
        known = name != "as_released"
        merged["template"] = template_named(name, merged["language"], form) if known else given["template"]
    made = completed(merged, reads=reads, trains=trains)
    assert asked.keys() <= {name for key in made for name in (key, key.rpartition(".")[2])}, (asked, made)
    return made | {key: changes[key] for key in changes.keys() - asked.keys()}


def completed(given: dict, *, reads: str, trains: bool = True) -> dict:
    """The settings of a run by what is given (key or slot.key) and by defaults, without what is not read."""
    return flat(composed(partial(given_to, given), reads=reads, trains=trains)[1])


def settings(method: str, **changes) -> dict:
    """The settings of a method under a short training, on texts."""
    return told(method, TRAINING, reads="text", **changes)


def asked_of(settings: dict, row: dict) -> dict:
    """What a run is asked: settings, the features and vectors that came among them, a backbone's row."""
    extras = {key: settings[key] for key in ("features", "vectors") if key in settings}
    told = {key: value for key, value in settings.items() if key not in extras}
    return {"settings": told, "extras": extras, "backbone": row}


def run(
    root: Path,
    method: str,
    *,
    seed: int = 1,
    start: Path | None = None,
    pair: bool = False,
    row: dict = ROW,
    device: str = "cpu",
    capture: bool = True,
    **changes,
):
    """Train a method on the made-up data below `root`; returns the run's folder. row: of the backbone."""
    point = Point("mine", "tiny", "toy", method, seed)
    path = root / "data/toy.parquet"
    if not path.exists():
        data.write(table(pair=pair), list(WORDS), path, sources={})
    asked = settings(
        method.partition("@")[0], start={"method": start.parent.name} if start else None, **changes
    )
    train(root, point, asked_of(asked, row), torch.device(device), start, capture=capture)
    return root / "runs" / point.path


def scores(folder: Path) -> pd.DataFrame:
    """A run's predictions, with a column for each logit."""
    kept = pd.read_parquet(folder / "predictions.parquet")
    logits = pd.DataFrame(kept.pop("scores").tolist(), dtype=float)
    return pd.concat([kept, logits], axis=1)


def interrupted(monkeypatch, *, at: int) -> list[int]:
    """Interrupt training at its update number `at`, once, its state saved at each step.

    The list that is returned has an entry for each update that was begun.
    """
    real, begun = loop.update, []

    def update(*arguments):
        begun.append(1)
        if len(begun) == at:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(loop, "update", update)
    monkeypatch.setattr(stopping, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(stopping, "SHARE", float("inf"))
    return begun
