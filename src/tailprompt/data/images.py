"""Images with labels from a folder, decoded once to uint8.

Two forms are read: `train.parquet` and `val.parquet` (columns image: encoded bytes, label: integer), or a
folder for each class with the image files anywhere below it (as ImageNet's and Tiny-ImageNet's `train`).
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int, UInt8
from PIL import Image, UnidentifiedImageError
from tqdm import tqdm

from tailprompt.errors import BadInput

ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}
Split = tuple[UInt8[np.ndarray, "images size size 3"], Int[np.ndarray, " images"]]


def read(folder: Path, *, size: int, held_out: float) -> tuple[dict[str, Split], int]:
    """Pixels and labels of `train` and `held_out`, and the number of classes.

    Images come out square, `size` pixels a side. A folder of classes gives the share `held_out` of its files,
    chosen by their names. Raises BadInput with all the images that cannot be decoded, before anything else.
    """
    if (folder / "train.parquet").is_file():
        found = {"train": table(folder / "train.parquet"), "held_out": table(folder / "val.parquet")}
    else:
        found = classes(folder, held_out)
    wrong, splits = [], {}
    for split, (names, contents, labels) in found.items():
        pixels = np.zeros((len(labels), size, size, 3), np.uint8)
        for number, content in enumerate(tqdm(contents, desc=split, unit=" images", mininterval=2)):
            try:
                pixels[number] = decode(content, size)
            except (UnidentifiedImageError, OSError) as error:
                wrong.append(f"{names[number]} ({error})")
        splits[split] = (pixels, labels)
    if wrong:
        raise BadInput(
            f"{folder}: {len(wrong)} images cannot be decoded: {'; '.join(wrong[:5])}"
            f"{'; …' if len(wrong) > 5 else ''}"
        )
    return splits, int(max(labels.max() for _, labels in splits.values())) + 1


def decode(content: bytes | Path, size: int) -> UInt8[np.ndarray, "size size 3"]:
    """One image as RGB, its shorter side scaled to `size` and its middle cut out."""
    image = Image.open(io.BytesIO(content) if isinstance(content, bytes) else content).convert("RGB")
    if image.size != (size, size):
        scale = size / min(image.size)
        width, height = (max(size, round(side * scale)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.BICUBIC)
        left, top = (width - size) // 2, (height - size) // 2
        image = image.crop((left, top, left + size, top + size))
    return np.asarray(image)


def table(path: Path) -> tuple[list[str], list[bytes], Int[np.ndarray, " images"]]:
    """Names, encoded images and labels of a Parquet file."""
    try:
        frame = pd.read_parquet(path, columns=["image", "label"])
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: needs the columns image and label ({error})") from None
    contents = [value["bytes"] if isinstance(value, dict) else value for value in frame["image"]]
    return (
        [f"{path.name}:{row + 1}" for row in range(len(frame))],
        contents,
        frame["label"].to_numpy(np.int64),
    )


def classes(folder: Path, held_out: float) -> dict:
    """Names, files and labels of a folder of classes, split by the names of the files."""
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    files = [
        (file, label)
        for label, name in enumerate(names)
        for file in sorted((folder / name).rglob("*"))
        if file.suffix.lower() in ENDINGS
    ]
    if not files:
        raise BadInput(f"{folder}: neither train.parquet nor a folder of images for each class is there")
    out = [
        int.from_bytes(hashlib.sha1(file.name.encode()).digest()[:4]) < held_out * 2**32 for file, _ in files
    ]
    return {
        split: (
            [str(file) for (file, _), is_out in zip(files, out, strict=True) if is_out == wanted],
            [file for (file, _), is_out in zip(files, out, strict=True) if is_out == wanted],
            np.array(
                [label for (_, label), is_out in zip(files, out, strict=True) if is_out == wanted], np.int64
            ),
        )
        for split, wanted in (("train", False), ("held_out", True))
    }
