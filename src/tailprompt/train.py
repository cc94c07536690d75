"""Train one run: the data's Parquet and the settings of a point become weights and predictions.

`python -m tailprompt.train --root results/demo --point glee/bert-mini/cmid/prompt/775 --settings JSON
--backbone JSON`. Everything is written whole into the run's folder; a killed run leaves `state.pt` there and
goes on from it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor

from tailprompt import adapter, backbones, data
from tailprompt.backbones import VisionBackbone
from tailprompt.cards import free
from tailprompt.compose import (
    ImageModel,
    Model,
    compose,
    encode_rows,
    load_trained,
    read_by,
    rescaled,
    view_rows,
    word_ids,
)
from tailprompt.encode import Examples
from tailprompt.errors import BadInput, known, named, stage
from tailprompt.files import json_object, keyed, read_json, sha256, write_json
from tailprompt.images import Images
from tailprompt.loop import Progress, fit, predict
from tailprompt.objective import objective
from tailprompt.outcome import (
    chosen_prompts,
    features_of,
    write_curve,
    write_features,
    write_predictions,
    write_weights,
)
from tailprompt.plan import Point, parse
from tailprompt.provenance import surroundings
from tailprompt.samplers import SAMPLERS

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


def train(
    root: Path, point: Point, settings: dict, row: dict, device: torch.device, start: Path | None
) -> None:
    """Train `point` and write its folder."""
    folder, begun = root / "runs" / point.path, time.monotonic()
    path = root / "data" / f"{point.dataset}.parquet"
    table, classes = data.read(path)
    if absent := set(settings.get("features", [])) - set(classes):
        raise BadInput(
            f"features: no class {known(absent)} in {path}, which a figure asks for; known: {known(classes)}"
        )
    words = class_words(classes, settings.get("verbalizer"))
    parts = {split: table[table["split"] == split] for split in ("train", "dev", "test")}
    check_dev(settings, {split: len(part) for split, part in parts.items()}, path)
    torch.manual_seed(point.seed)
    backbone = backbones.load(row, device, learns=settings["tuner"] == "full")
    source = settings.get("verbalizer") or f"class names of {path}"
    scored = word_ids(words, backbone, settings, source=source)
    texts = () if isinstance(backbone, VisionBackbone) else parts["train"]["text"].tolist()
    model = compose(backbone, settings, words=scored, texts=texts)
    if start:
        load_trained(model, start, new=model.new(tuned=tuned(start)))
    pixels = root / "images" / f"{parse(point.dataset)[0]}.npy"
    view = partial(
        examples_of, backbone=backbone, settings=settings, words=words, pixels=pixels, device=device
    )
    splits = {split: view(part, training=split == "train") for split, part in parts.items()}
    model.to(device)
    if settings.get("compile") and device.type == "cuda":
        model.body.compile_blocks()
    if settings.get("head_start") == "class_means" and not start:
        start_from_means(model, view(parts["train"], training=False))
    key = json.dumps([settings, row, words, sha256(path)], sort_keys=True)
    learns = bool(len(parts["train"]))  # a data set for test alone judges the run it starts from
    progress = fit_model(model, splits, classes, settings, point, folder, key) if learns else Progress()
    logits = {
        split: predict(model, splits[split], precision=settings["precision"])
        for split in ("dev", "test")
        if len(splits[split])
    }
    tau = choose_tau(model, logits.get("dev"), splits["dev"].labels.cpu(), settings)
    logits = {split: rescaled(model, value, tau) for split, value in logits.items()}
    write_predictions(folder / "predictions.parquet", logits, splits, chosen_prompts(model, splits, settings))
    asked = [classes.index(name) for name in settings.get("features", [])]
    shown = features_of(model, splits["test"], "test", asked)
    if settings.get("vectors"):
        seen = {"train": view(parts["train"], training=False), "test": splits["test"]}
        every = range(len(classes))
        shown = pd.concat([features_of(model, part, split, every) for split, part in seen.items()])
    write_features(folder / "features.parquet", shown)
    write_weights(folder / "weights.safetensors", model, settings)
    write_curve(folder / "curve.csv", progress)
    about = {
        "point": vars(point),
        "settings": settings,
        "backbone": row,
        "classes": classes,
        "words": words,
        "data": {
            "path": str(path),
            "sha256": sha256(path),
            "rows": {split: len(part) for split, part in splits.items()},
            "pair": "pair" in table,
            "choices": "choices" in table,
            **decoding(path, table),
        },
        "truncated": {split: part.truncated for split, part in splits.items()},
        "trainable": sum(value.numel() for value in model.parameters() if value.requires_grad),
        "trainable_head": sum(value.numel() for value in model.head.parameters() if value.requires_grad),
        "total": sum(value.numel() for value in model.parameters()),
        "steps": progress.step,
        "best_step": progress.best_step,
        "selection_split": "none" if settings["select"] == "last" else "dev",
        "dev": judge(logits["dev"], splits["dev"].labels.cpu()) if "dev" in logits else {},
        "tau": tau,
        "micro_batch": progress.micro,
        "training_seconds": round(progress.seconds, 2),
        "seconds": round(time.monotonic() - begun, 2),
        **({"device_map": backbone.device_map} if getattr(backbone, "device_map", None) else {}),
        **surroundings(device),
    }
    write_json(folder / "run.json", about)
    (folder / "state.pt").unlink(missing_ok=True)


def check_dev(settings: dict, rows: dict[str, int], path: Path) -> None:
    """Raise BadInput where something is to be chosen on dev, and cannot be. rows: of each split of `path`."""
    select = settings["select"]
    if np.size(settings["tau"]) > 1 and (select == "last" or not rows["dev"]):
        raise BadInput(f"tau: select chooses one of several on dev; state one tau ({path}, select: {select})")
    if rows["train"] and not rows["dev"] and select != "last":
        raise BadInput(f"select: {select} needs dev rows, and {path} has none; set select: last")


def tuned(run: Path) -> bool:
    """Whether a run's body may not be the checkpoint's: it learned there, or in a run before.

    Never that of an adapter.
    """
    if adapter.is_adapter(run):
        return False
    settings = read_json(run / "run.json", "settings")["settings"]
    return settings["tuner"] == "full" or bool(settings["start"])


def decoding(path: Path, table: pd.DataFrame) -> dict[str, dict]:
    """How the images of a prepared data set were decoded, so that new ones can be alike; nothing of texts."""
    return {"decoded": read_json(path.with_suffix(".json")).get("decoded")} if "image" in table else {}


def examples_of(
    part: pd.DataFrame,
    *,
    backbone: backbones.Backbone | VisionBackbone,
    settings: dict,
    words: dict[str, str],
    pixels: Path,
    device: torch.device,
    training: bool,
) -> Examples | Images:
    """A split on the device: texts as token ids, images as views of the file `pixels`."""
    if isinstance(backbone, VisionBackbone):
        return view_rows(part, backbone, settings, pixels, training=training).to(device)
    return encode_rows(part, backbone, settings, words=words).to(device)


@torch.no_grad()
def start_from_means(model: ImageModel, examples: Images) -> None:
    """Give each class's vector in the head the direction of the mean feature of its examples.

    As LIFT does (Shi et al. 2024); a class without examples keeps its random one.
    """
    features, labels = predict(model, examples, apply=model.features), examples.labels.cpu()
    vectors = model.head.class_vectors()
    for label in labels.unique().tolist():
        vectors[label] = torch.nn.functional.normalize(features[labels == label].mean(0), dim=0)


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


def fit_model(
    model: Model | ImageModel,
    splits: dict[str, Examples | Images],
    classes: list[str],
    settings: dict,
    point: Point,
    folder: Path,
    key: str,
) -> Progress:
    """Run the loop with the settings' loss and sampler. key: what a state must say to be gone on from."""
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


def judge(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Accuracy and macro F1 over the classes in labels or predictions (as GLEE's code)."""
    predicted = logits.argmax(-1)
    return {
        "accuracy": float(accuracy_score(labels, predicted)),
        "f1": float(f1_score(labels, predicted, average="macro", zero_division=0)),
    }


def choose_tau(model: Model | ImageModel, logits: Tensor | None, labels: Tensor, settings: dict) -> float:
    """The exponent of tau-norm with the best dev score, the smallest of equals; dev only, after training."""
    taus = settings["tau"] if isinstance(settings["tau"], list) else [settings["tau"]]
    if len(taus) == 1:
        return taus[0]
    scores = [judge(rescaled(model, logits, tau), labels)[settings["select"]] for tau in taus]
    return taus[int(np.argmax(scores))]


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
    parser.add_argument("--settings", required=True, help="the run's settings, as JSON")
    parser.add_argument("--backbone", required=True, help="the backbone's row, as JSON")
    parser.add_argument("--start", type=Path, help="folder of the run to start from")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--slots", type=int, default=1, help="runs that may share a card")
    parser.add_argument("--cards", type=int, default=1, help="cards of a backbone with device_map")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if min(options.slots, options.cards, options.threads) < 1:
        parser.error("--slots, --cards and --threads are numbers from 1")
    point = point_at(options.point)
    settings = json_object(options.settings, "--settings", "input", *LOOP, *COST, *AFTER)
    keyed(settings, "--settings", *(OF_IMAGES if settings["input"] == "pixels" else ()), *read_by(settings))
    row = json_object(options.backbone, "--backbone", "family")
    repeatable(options.threads)
    with free(options.device, slots=options.slots, wanted=options.cards) as device:
        train(options.root, point, settings, row, torch.device(device), options.start)


if __name__ == "__main__":
    stage(main)
