"""Many image files decoded in parallel into one array."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from tailprompt.data import folders, pictures
from tailprompt.errors import BadInput, counted, few
from tailprompt.files import room
from tailprompt.machine.progress import shown

TOGETHER = 4096  # images queued for the threads at a time


def check_space(out: Path, size: int) -> None:
    """Raise BadInput if `size` bytes do not fit: writing to a mapped file on a full disk kills the job."""
    if size > (free := room(out)):
        raise BadInput(
            f"{out}: its images take {size / 1e9:.1f} GB, and the disk has {free / 1e9:.1f} GB left; "
            "make room, or keep fewer pixels (side)"
        )


def filled(
    pixels: np.ndarray, contents: list, options: dict, threads: int, name: str
) -> list[tuple[str, str] | Exception | None]:
    """Decode into `pixels`; returns for each image the digest of its pixels and its mode, or its exception.

    A missing file gives None. PIL releases the GIL while it decodes, so threads run in parallel.
    """
    work, done = partial(place, pixels, contents, options), []
    with ThreadPoolExecutor(threads) as pool, shown(name, total=len(contents), unit="image") as show:
        for start in range(0, len(contents), TOGETHER):
            done += pool.map(work, range(start, min(start + TOGETHER, len(contents))))
            show(len(done))
    return done


def place(
    pixels: np.ndarray, contents: list, options: dict, number: int
) -> tuple[str, str] | Exception | None:
    """Decode one image into its row."""
    content = contents[number]
    if isinstance(content, Path) and not os.path.isfile(content):
        return None
    try:
        pixels[number], mode = pictures.decoded(content, **options)
    except Exception as error:  # each image format raises its own exceptions
        return error
    return hashlib.blake2b(pixels[number], digest_size=8).hexdigest(), mode


def damaged(table: pd.DataFrame, done: list) -> list[str]:
    """A clause about the images that cannot be decoded."""
    bad = [
        f"{name} ({' '.join(str(error).split())})"
        for name, error in zip(map(folders.printable, table["id"]), done, strict=True)
        if isinstance(error, Exception)
    ]
    return [f"{counted(len(bad), 'image')} cannot be decoded: {few(bad, shown=3)}"] if bad else []
