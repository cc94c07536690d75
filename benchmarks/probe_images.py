"""How good the features of image backbones are: accuracy of k-NN and a linear probe, beside a random network.

    PYTHONPATH=src python benchmarks/probe_images.py --data cifar100 workflow/resources/backbones/vit-mini

--data: a folder with train.parquet and test.parquet (image; label or fine_label). A backbone is a folder that
timm loads, or `random:FOLDER` for its architecture with random weights. Images are scaled to its input size.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import timm
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from torch.nn.functional import interpolate

from tailprompt.data.pictures import decoded
from tailprompt.inputs.augment import normalised


def images(path: Path, per_class: int) -> tuple[torch.Tensor, np.ndarray]:
    """The first `per_class` images of each class as uint8 (images, 3, 32, 32), and their labels."""
    table = pd.read_parquet(path)
    label = "label" if "label" in table else "fine_label"
    table = table.groupby(label).head(per_class)
    contents = (value["bytes"] if isinstance(value, dict) else value for value in table["image"])
    pixels = np.stack([decoded(content, 32)[0] for content in contents])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2), table[label].to_numpy()


def load(name: str) -> tuple[torch.nn.Module, int]:
    """The backbone without its head, and the side of its images."""
    folder = name.removeprefix("random:")
    torch.manual_seed(0)
    model = timm.create_model(f"local-dir:{folder}", pretrained=folder == name, num_classes=0).eval()
    return model, model.patch_embed.img_size[0]


@torch.no_grad()
def features(model: torch.nn.Module, side: int, pixels: torch.Tensor) -> np.ndarray:
    parts = []
    for part in pixels.split(500):
        inputs = normalised(part)
        if side != inputs.shape[-1]:
            inputs = interpolate(inputs, size=(side, side), mode="bicubic", antialias=True)
        parts.append(model(inputs))
    return torch.cat(parts).numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--train", type=int, default=100, help="images a class")
    parser.add_argument("--test", type=int, default=100, help="images a class")
    parser.add_argument("backbones", nargs="+")
    options = parser.parse_args()
    train, labels = images(options.data / "train.parquet", options.train)
    test, answers = images(options.data / "test.parquet", options.test)
    print(f"{len(train)} train and {len(test)} test images")
    for name in options.backbones:
        model, side = load(name)
        known, asked = features(model, side, train), features(model, side, test)
        near = KNeighborsClassifier(20, metric="cosine", weights="distance").fit(known, labels)
        scale = StandardScaler().fit(known)
        probe = LogisticRegression(C=0.01, max_iter=300).fit(scale.transform(known), labels)
        print(
            f"{name}: 20-NN {100 * near.score(asked, answers):.1f}, "
            f"linear probe {100 * probe.score(scale.transform(asked), answers):.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
