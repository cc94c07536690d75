"""Train one run: the data's Parquet and the settings of a point become weights and predictions.

`python -m tailprompt.train --root results/demo --point glee/bert-mini/cmid/prompt/775 --asked FILE`: what the
run is asked, as `plan.asked` writes it. Everything is written whole into the run's folder. A killed run
leaves `state.pt` there and goes on from it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor

from tailprompt.data import table as data
from tailprompt.errors import BadInput, known, named, stage
from tailprompt.files import keyed, read_json, sha256, write_json
from tailprompt.gpus import free
from tailprompt.inputs.encode import Examples
from tailprompt.inputs.examples import examples_of, word_ids
from tailprompt.inputs.images import Images
from tailprompt.model import backbones
from tailprompt.model.backbones import VisionBackbone
from tailprompt.model.compose import ImageModel, Model, compose, read_by, rescaled
from tailprompt.model.weights import file_of, load_trained, tuned, write_weights
from tailprompt.plan.asked import read_asked
from tailprompt.plan.points import Point, parse
from tailprompt.training.loop import Progress, fit, predict
from tailprompt.training.objective import objective
from tailprompt.training.outcome import (
    asked_features,
    chosen_prompts,
    write_curve,
    write_features,
    write_predictions,
)
from tailprompt.training.provenance import surroundings
from tailprompt.training.samplers import SAMPLERS

LOOP = (
    "select",
    "optimizer",
    "momentum",
    "schedule",
    "lr",
    "batch",
    "epochs",
    "patience",
    "warmup",
    "weight_decay",
    "adam_eps",
    "clip",
    "evaluate_every",
    "precision",
    "bucket",
)
COST = ("loss", "sampler", "dual_weight", "lambda_positive_instance", "lambda_negative_instance")
AFTER = ("tau", "keep", "start")
OF_IMAGES = ("compile", "key_weight", "key_scaled", "head_start", "augment", "crop_scale", "flip", "mixup")


@dataclass(frozen=True)
class Prepared:
    """A prepared data set as a run reads it. words: each class's, in class order."""

    path: Path
    table: pd.DataFrame
    classes: list[str]
    words: dict[str, str]

    @cached_property
    def parts(self) -> dict[str, pd.DataFrame]:
        """The rows of each split."""
        return {split: self.table[self.table["split"] == split] for split in ("train", "dev", "test")}


def train(
    root: Path,
    point: Point,
    settings: dict,
    row: dict,
    device: torch.device,
    start: Path | None,
    asked: dict | None = None,
) -> None:
    """Train `point` and write its folder. asked: what the run is asked, which run.json repeats."""
    folder, begun = root / "runs" / point.path, time.monotonic()
    prepared = read(root / "data" / f"{point.dataset}.parquet", settings)
    torch.manual_seed(point.seed)
    backbone = backbones.load(row, device, learns=settings["tuner"] == "full")
    model = begun_model(backbone, settings, prepared, start)
    pixels = root / "images" / f"{parse(point.dataset)[0]}.npy"
    view = partial(
        examples_of, backbone=backbone, settings=settings, words=prepared.words, pixels=pixels, device=device
    )
    splits = {split: view(part, training=split == "train") for split, part in prepared.parts.items()}
    as_judged = partial(view, prepared.parts["train"], training=False)  # made where it is asked for
    to_device(model, settings, device)
    if settings.get("head_start") == "class_means" and not start:
        start_from_means(model, as_judged())
    origin = start and sha256(file_of(start))
    key = json.dumps([settings, row, prepared.words, sha256(prepared.path), origin], sort_keys=True)
    progress = fit_model(model, splits, prepared.classes, settings, point, folder, key)
    logits, tau = predicted(model, splits, settings)
    write_predictions(folder / "predictions.parquet", logits, splits, chosen_prompts(model, splits, settings))
    features = asked_features(model, splits["test"], as_judged, prepared.classes, settings)
    write_features(folder / "features.parquet", features)
    write_weights(folder / "weights.safetensors", model, settings)
    write_curve(folder / "curve.csv", progress)
    about = {"point": vars(point), "settings": settings, "backbone": row, **(asked or {})}
    about |= {"start_sha256": origin, "weights_sha256": sha256(folder / "weights.safetensors")}
    about |= about_data(prepared, splits) | about_size(model)
    about |= about_training(progress, settings, dev_scores(logits, splits), tau)
    about |= {"seconds": round(time.monotonic() - begun, 2), **about_cards(backbone), **surroundings(device)}
    write_json(folder / "run.json", about)
    (folder / "state.pt").unlink(missing_ok=True)


def read(path: Path, settings: dict) -> Prepared:
    """A prepared data set; raises BadInput where a run of these settings cannot be made on it."""
    table, classes = data.read(path)
    if absent := set(settings.get("features", [])) - set(classes):
        raise BadInput(
            f"features: no class {known(absent)} in {path}, which a figure asks for; known: {known(classes)}"
        )
    prepared = Prepared(path, table, classes, class_words(classes, settings.get("verbalizer")))
    check_dev(settings, {split: len(part) for split, part in prepared.parts.items()}, path)
    return prepared


def check_dev(settings: dict, rows: dict[str, int], path: Path) -> None:
    """Raise BadInput where something is to be chosen on dev, and cannot be. rows: of each split of `path`."""
    select = settings["select"]
    if np.size(settings["tau"]) > 1 and (select == "last" or not rows["dev"]):
        raise BadInput(f"tau: select chooses one of several on dev; state one tau ({path}, select: {select})")
    if rows["train"] and not rows["dev"] and select != "last":
        raise BadInput(f"select: {select} needs dev rows, and {path} has none; set select: last")


def class_words(classes: list[str], verbalizer: str | None) -> dict[str, str]:
    """Each class's word, in class order: the verbalizer's, else the class's name in plain words."""
    if verbalizer is None:
        return {name: re.sub(r"(?<=\w)[-_]+(?=\w)", " ", name) for name in classes}  # -1 stays -1
    table = data.read_words(Path(verbalizer))
    words = dict(zip(table["label"], table["words"], strict=True))
    missing = [name for name in classes if not words.get(name)]
    if missing:
        raise BadInput(f"{verbalizer}: no word for {known(missing)}; every class needs a row label,words")
    return {name: words[name] for name in classes}


def begun_model(
    backbone: backbones.Backbone | VisionBackbone, settings: dict, prepared: Prepared, start: Path | None
) -> Model | ImageModel:
    """The model of a run as it begins: with the weights of the run at `start`, where there is one."""
    source = settings.get("verbalizer") or f"class names of {prepared.path}"
    words = word_ids(prepared.words, backbone, settings, source=source)
    texts = () if isinstance(backbone, VisionBackbone) else prepared.parts["train"]["text"].tolist()
    model = compose(backbone, settings, words=words, texts=texts)
    if start:
        load_trained(model, start, new=model.new(tuned=tuned(start)))
    return model


def to_device(model: Model | ImageModel, settings: dict, device: torch.device) -> None:
    """Move the model, and compile its blocks where the settings say so and there is a card."""
    model.to(device)
    if settings.get("compile") and device.type == "cuda":
        model.body.compile_blocks()


@torch.no_grad()
def start_from_means(model: ImageModel, examples: Images) -> None:
    """Give each class's vector in the head the direction of the mean feature of its examples.

    As LIFT does (Shi et al. 2024); a class without examples keeps its random one.
    """
    features, labels = predict(model, examples, apply=model.features), examples.labels.cpu()
    vectors = model.head.class_vectors()
    for label in labels.unique().tolist():
        vectors[label] = torch.nn.functional.normalize(features[labels == label].mean(0), dim=0)


def fit_model(
    model: Model | ImageModel,
    splits: dict[str, Examples | Images],
    classes: list[str],
    settings: dict,
    point: Point,
    folder: Path,
    key: str,
) -> Progress:
    """Run the loop with the settings' loss and sampler. key: what a state must say to be gone on from.

    A data set for test alone judges the run it starts from.
    """
    if not len(splits["train"]):
        return Progress()
    others = settings.get("decoding") == "open"  # one column more, of no class
    counts = torch.bincount(splits["train"].labels, minlength=len(classes) + others).float()
    return fit(
        model,
        splits["train"],
        splits["dev"],
        loss=objective(settings, counts),
        sampler=named(SAMPLERS, settings["sampler"], "sampler"),
        judge=judge,
        seed=point.seed,
        state=folder / "state.pt",
        key=key,
        label=f"{point.dataset} {point.method} {point.seed}",
        **{key: settings[key] for key in LOOP},
    )


def predicted(
    model: Model | ImageModel, splits: dict[str, Examples | Images], settings: dict
) -> tuple[dict[str, Tensor], float]:
    """Logits of dev and test after tau-norm, where there are examples, and tau, chosen on dev."""
    logits = {
        split: predict(model, splits[split], precision=settings["precision"])
        for split in ("dev", "test")
        if len(splits[split])
    }
    tau = choose_tau(model, logits.get("dev"), splits["dev"].labels.cpu(), settings)
    return {split: rescaled(model, value, tau) for split, value in logits.items()}, tau


def choose_tau(model: Model | ImageModel, logits: Tensor | None, labels: Tensor, settings: dict) -> float:
    """The exponent of tau-norm with the best dev score, the smallest of equals; dev only, after training."""
    taus = settings["tau"] if isinstance(settings["tau"], list) else [settings["tau"]]
    if len(taus) == 1:
        return taus[0]
    scores = [judge(rescaled(model, logits, tau), labels)[settings["select"]] for tau in taus]
    return taus[int(np.argmax(scores))]


def judge(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Accuracy and macro F1 over the classes in labels or predictions (as GLEE's code)."""
    predicted = logits.argmax(-1)
    return {
        "accuracy": float(accuracy_score(labels, predicted)),
        "f1": float(f1_score(labels, predicted, average="macro", zero_division=0)),
    }


def dev_scores(logits: dict[str, Tensor], splits: dict[str, Examples | Images]) -> dict[str, float]:
    """The scores on dev, where there is one."""
    return judge(logits["dev"], splits["dev"].labels.cpu()) if "dev" in logits else {}


def about_data(prepared: Prepared, splits: dict[str, Examples | Images]) -> dict:
    """What run.json says of the data."""
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
            **decoding(path, table),
        },
        "truncated": {split: part.truncated for split, part in splits.items()},
    }


def decoding(path: Path, table: pd.DataFrame) -> dict[str, dict]:
    """How the images of a prepared data set were decoded, so that new ones can be alike; nothing of texts."""
    return {"decoded": read_json(path.with_suffix(".json")).get("decoded")} if "image" in table else {}


def about_size(model: Model | ImageModel) -> dict[str, int]:
    """What run.json says of the model: numbers that learn, of them the head's, and all."""
    return {
        "trainable": sum(value.numel() for value in model.parameters() if value.requires_grad),
        "trainable_head": sum(value.numel() for value in model.head.parameters() if value.requires_grad),
        "total": sum(value.numel() for value in model.parameters()),
    }


def about_training(progress: Progress, settings: dict, dev: dict[str, float], tau: float) -> dict:
    """What run.json says of training and of what was chosen. dev: the scores on it."""
    return {
        "steps": progress.step,
        "best_step": progress.best_step,
        "selection_split": "none" if settings["select"] == "last" else "dev",
        "dev": dev,
        "tau": tau,
        "micro_batch": progress.micro,
        "training_seconds": round(progress.seconds, 2),
    }


def about_cards(backbone: backbones.Backbone | VisionBackbone) -> dict:
    """What run.json says of a backbone that lies over several cards: which part lies where."""
    placed = getattr(backbone, "device_map", None)
    return {"device_map": placed} if placed else {}


def repeatable(threads: int) -> None:
    """The same run on the same machine gives the same numbers."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_num_threads(threads)


def point_at(path: str) -> Point:
    """The point of the command line."""
    try:
        point = Point.at(path)
    except (TypeError, ValueError):
        raise BadInput(f"--point {path} is not protocol/backbone/dataset/method/seed") from None
    if not 0 <= point.seed < 2**32:
        raise BadInput(f"--point {path}: a seed is a number from 0 to {2**32 - 1}")
    return point


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tailprompt.train", description="Train one run.")
    parser.add_argument("--root", required=True, type=Path, help="results/<scale>")
    parser.add_argument("--point", required=True, help="protocol/backbone/dataset/method/seed")
    parser.add_argument("--asked", required=True, type=Path, help="JSON with its settings and backbone's row")
    parser.add_argument("--start", type=Path, help="folder of the run to start from")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--slots", type=int, default=1, help="runs that may share a card")
    parser.add_argument("--cards", type=int, default=1, help="cards of a backbone with device_map")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if min(options.slots, options.cards, options.threads) < 1:
        parser.error("--slots, --cards and --threads are numbers from 1")
    point = point_at(options.point)
    asked = read_asked(options.asked)
    settings = {**asked["settings"], **asked["extras"]}
    keyed(settings, options.asked, "input", *LOOP, *COST, *AFTER)
    keyed(settings, options.asked, *(OF_IMAGES if settings["input"] == "pixels" else ()), *read_by(settings))
    row = keyed(asked["backbone"], options.asked, "family")
    repeatable(options.threads)
    with free(options.device, slots=options.slots, wanted=options.cards) as device:
        train(options.root, point, settings, row, torch.device(device), options.start, asked)


if __name__ == "__main__":
    stage(main)
