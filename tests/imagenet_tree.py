"""Made-up images in folders of ImageNet's form and of the test sets that LPT's Tables 6 and 16 take."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import tiny_vit
from PIL import Image

from tailprompt.data.imagenet import shipped, synsets

SIDE, PER_CLASS = 16, 40  # pixels; the most images of a class in training
CONFIG = f"""
scale: shifted
make: {{lpt: {{tables: [table6, table16], figures: []}}}}
data_dir: null
device: cpu
threads: 1
backbones: {{tiny: {{family: vit, path: vit, settings: {{shared_blocks: 2}}}}}}
datasets:
  imagenet-lt:
    root: imagenet
    side: {SIDE}
    files: {{train: lists/train.txt, dev: lists/dev.txt, test: lists/test.txt}}
  imagenet-sketch: {{root: sketch, side: {SIDE}}}
  imagenet-real:   {{root: imagenet/val, side: {SIDE}}}
  imagenet-v2:     {{root: v2, side: {SIDE}}}
  imagenet-a:      {{root: a, side: {SIDE}}}
  imagenet-r:      {{root: r, side: {SIDE}}}
  objectnet:       {{root: objectnet, side: {SIDE}}}
protocols:
  lpt:
    seeds: [42]
    backbones: {{image: tiny}}
    settings:
      {{optimizer: adamw, lr: 1.0e-2, batch: 64, epochs: 1, warmup: 0.1, precision: float32, mixup: 0.0,
       length: 2, pool: 5}}
"""


def write(root: Path) -> Path:
    """Everything below `root`: a backbone, ImageNet-LT, its lists, six test sets and `shifted.yaml`."""
    (root / "vit").mkdir(parents=True)
    tiny_vit.folder(root / "vit", tiny_vit.vit(num_classes=4))
    (root / "shifted.yaml").write_text(CONFIG)
    names, draw = synsets(), np.random.default_rng(0)
    long_tailed(root, names, draw)
    of_validation(root / "imagenet/val", draw)
    classes(root / "sketch", names, draw)
    classes(root / "v2", map(str, range(len(names))), draw)
    for name, first in (("a", 0), ("r", 1)):  # 200 classes each
        classes(root / name, names[first::5], draw)
    objects(root / "objectnet", draw)
    return root


def noise(file: Path, draw: np.random.Generator) -> None:
    """An image of noise."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(draw.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)).save(file)


def long_tailed(root: Path, names: list[str], draw: np.random.Generator) -> None:
    """Training images of all 1,000 classes by a power law, one of each for dev and test, and their lists."""
    lists: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for label, name in enumerate(names):
        counts = {"train": max(1, PER_CLASS // (1 + label)), "dev": 1, "test": 1}
        for split, count in counts.items():
            for i in range(count):
                file = f"{'val' if split == 'test' else 'train'}/{name}/{split}_{i}.png"
                noise(root / "imagenet" / file, draw)
                lists[split].append(f"{file} {label}")
    for split, lines in lists.items():
        (root / "lists").mkdir(exist_ok=True)
        (root / "lists" / f"{split}.txt").write_text("\n".join(lines) + "\n")


def of_validation(folder: Path, draw: np.random.Generator) -> None:
    """All 50,000 images of validation by name; they are links to a few, which take no space."""
    count = len(json.loads(shipped("imagenet_real_labels.json").read_text("utf-8")))
    for i in range(10):
        noise(folder / f"noise/{i}.png", draw)
    for number in range(1, count + 1):
        os.link(folder / f"noise/{number % 10}.png", folder / f"noise/ILSVRC2012_val_{number:08d}.png")


def classes(folder: Path, names, draw: np.random.Generator) -> None:
    """A folder with an image for each class."""
    for name in names:
        noise(folder / name / "0.png", draw)


def objects(root: Path, draw: np.random.Generator) -> None:
    """ObjectNet's form: its own names, of which one is two classes of ImageNet and one is none."""
    names = ["tench, Tinca tinca", "goldfish", "great white shark"]
    labels = {"fish": "Fish", "shark": "Shark", "nothing": "Nothing"}
    classes(root / "images", labels, draw)
    mappings = root / "mappings"
    mappings.mkdir()
    (mappings / "imagenet_to_label_2012_v2").write_text("\n".join(names) + "\n")
    written = {
        "pytorch_to_imagenet_2012_id": {str(i): i for i in range(len(names))},
        "objectnet_to_imagenet_1k": {"Fish": "; ".join(names[:2]), "Shark": names[2]},
        "folder_to_objectnet_label": labels,
    }
    for name, content in written.items():
        (mappings / f"{name}.json").write_text(json.dumps(content))
