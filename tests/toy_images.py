"""A small made-up set of image files, decoded and prepared, and one run of the training stage on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tiny_vit
import torch
import toy
from PIL import Image

from tailprompt import decode
from tailprompt.data import report
from tailprompt.data import table as data
from tailprompt.files import write_json
from tailprompt.plan.points import Point
from tailprompt.train import train

CLASSES = ["bar", "disc", "ring"]
COUNTS = {"train": (14, 7, 3), "dev": (6, 4, 2), "test": (9, 5, 3)}
ROW = {"name": "toy", "title": "Toy", "language": "image", "loader": "image_folder", "side": 20}
TRAINING = {
    "optimizer": "sgd",
    "schedule": "cosine",
    "lr": 0.1,
    "weight_decay": 1e-4,
    "adam_eps": 1e-8,
    "clip": 0.0,
    "warmup": 0.5,
    "batch": 8,
    "epochs": 2,
    "patience": 9,
    "evaluate_every": 0,
    "select": "last",
    "precision": "float32",
    "bucket": 1,
    "length": 2,
    "pool": 5,
    "shared_blocks": 2,
    "mixup": 1.0,
}


def picture(label: int, draw: np.random.Generator) -> Image.Image:
    """24 x 20 pixels in a class's colour, with noise."""
    pixels = draw.integers(0, 90, (20, 24, 3))
    pixels[4:16, 6:18, label] += 150
    return Image.fromarray(pixels.astype(np.uint8))


def write_pictures(folder: Path, counts: dict[str, tuple[int, ...]] = COUNTS) -> Path:
    """Image files in split/class/; returns their folder."""
    draw = np.random.default_rng(0)
    for split, numbers in counts.items():
        for label, (name, number) in enumerate(zip(CLASSES, numbers, strict=True)):
            (folder / split / name).mkdir(parents=True)
            for i in range(number):
                picture(label, draw).save(folder / split / name / f"{i}.png")
    return folder


def prepare(root: Path, dataset: str = "toy", counts: dict[str, tuple[int, ...]] = COUNTS, **row) -> None:
    """What stages decode and prepare leave of a set of made-up pictures below `root`."""
    told = {**ROW, "name": dataset, **row}
    array, table = root / "images" / f"{dataset}.npy", root / "data" / f"{dataset}.parquet"
    decode.decode(told, {}, {}, write_pictures(root / "pictures" / dataset, counts), array, threads=1)
    made, classes, about = data.load_images(told, array.with_suffix(".parquet"))
    data.write(made, classes, table, sources={})
    write_json(
        table.with_suffix(".json"),
        report.describe(made, classes, told, dataset=dataset, task="classification", **about),
    )


def backbone(root: Path, **changes) -> dict:
    """The row of a tiny random ViT, which is written below `root`."""
    folder = root / "vit"
    if not folder.exists():
        folder.mkdir()
        tiny_vit.folder(folder, tiny_vit.vit(num_classes=4))
    return {"family": "vit", "path": str(folder), **changes}


def settings(method: str, **changes) -> dict:
    """The settings of a method of config/methods.yaml, under a short training."""
    return toy.told(method, TRAINING, reads="image", **changes)


def run(
    root: Path,
    method: str,
    *,
    seed: int = 1,
    dataset: str = "toy",
    start: Path | None = None,
    device: str = "cpu",
    capture: bool = True,
    **changes,
) -> Path:
    """Train a method on the made-up images below `root`; returns the run's folder."""
    point = Point("mine", "tiny", dataset, method, seed)
    if not (root / "data" / f"{dataset}.parquet").exists():
        prepare(root, dataset)
    told = settings(
        method.partition("@")[0], start={"method": start.parent.name} if start else None, **changes
    )
    asked = toy.asked_of(told, backbone(root))
    train(root, point, asked, torch.device(device), start, capture=capture)
    return root / "runs" / point.path
