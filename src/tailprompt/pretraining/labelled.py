"""Labelled images for supervised pre-training of a backbone, all decoded into memory.

The folder has either `train.parquet` and `val.parquet` (columns image: encoded bytes, label: integer), or a
folder for each class with image files anywhere in it (as `train` of ImageNet and Tiny-ImageNet).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int, UInt8

from tailprompt.data.folders import others, skipped
from tailprompt.data.listings import CONTENT, folder_rows, table
from tailprompt.data.pictures import decoded
from tailprompt.errors import BadInput, counted, few
from tailprompt.machine.progress import say, shown

Split = tuple[UInt8[np.ndarray, "images size size 3"], Int[np.ndarray, " images"]]


def read(folder: Path, *, size: int, held_out: float) -> tuple[dict[str, Split], int]:
    """Pixels and labels of `train` and `held_out`, and the number of classes.

    Images are square with `size` pixels a side. In a folder of classes the share `held_out` of the files is
    held out by their names. Raises BadInput with the images that cannot be decoded.
    """
    if (folder / "train.parquet").is_file():
        parts = {"train": folder / "train.parquet", "held_out": folder / "val.parquet"}
        listings = {split: table(path).astype({"label": "int64"}) for split, path in parts.items()}
    else:
        listings = classes(folder, held_out)
    wrong, splits = [], {}
    for split, listed in listings.items():
        pixels = np.zeros((len(listed), size, size, 3), np.uint8)
        rows = zip(listed["id"], listed[CONTENT], strict=True)
        with shown(split, total=len(listed), unit="image") as show:
            for number, (name, content) in enumerate(rows):
                try:
                    pixels[number], _ = decoded(content, size)
                except Exception as error:  # each image format raises its own exceptions
                    wrong.append(f"{name} ({error})")
                show(number + 1)
        splits[split] = (pixels, listed["label"].to_numpy())
    if wrong:
        raise BadInput(f"{folder}: {counted(len(wrong), 'image')} cannot be decoded: {few(wrong)}")
    return splits, int(max(labels.max() for _, labels in splits.values())) + 1


def classes(folder: Path, held_out: float) -> dict[str, pd.DataFrame]:
    """The images in a folder of classes. Class ids follow their names, and splits the names of files."""
    try:
        listed = folder_rows(folder, folder)
    except (BadInput, OSError):
        raise BadInput(
            f"{folder}: neither train.parquet nor a folder of images for each class is there"
        ) from None
    if passed := skipped(folder, listed[CONTENT]):
        say(f"{folder}: {others(passed)}")
    names = {name: c for c, name in enumerate(sorted(set(listed["label"])))}
    listed["label"] = listed["label"].map(names).astype("int64")
    out = listed[CONTENT].map(
        lambda file: int.from_bytes(hashlib.sha1(file.name.encode()).digest()[:4]) < held_out * 2**32
    )
    return {"train": listed[~out], "held_out": listed[out]}
