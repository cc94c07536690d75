"""A split of decoded images as examples: batches of views, made on the device from uint8 pixels.

`data/pictures.py` decodes one image file; this module reads the array that stage decode made of them all.
A split is kept on the device if it takes at most a quarter of the memory that is free there (on a CPU: 1
GiB). Otherwise it stays in its memory-mapped file, and a thread reads the next batch ahead. Both ways give
the same batches, bit for bit. All randomness comes from the device's default generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from tailprompt.errors import BadInput, counted, named
from tailprompt.files import reading
from tailprompt.inputs.augment import (
    center_crop,
    five_crops,
    mixup,
    normalised,
    random_crop,
    random_flip,
    random_windows,
    resized,
    scaled,
)
from tailprompt.model.limits import check_views

AHEAD = 4  # batches that may be read ahead
BLOCK = 1024  # images copied to the device at a time
IN_MEMORY = 2**30  # bytes of a split that may be held in memory on a CPU


@dataclass(frozen=True)
class Images:
    """The images of a split, with the interface of `texts.Examples`."""

    unit = "example"
    file: UInt8[np.ndarray, "stored side side 3"]
    rows: Int[np.ndarray, " images"]  # of the file
    labels: Int[Tensor, " images"]
    names: Sequence[str]
    view: Callable[[UInt8[Tensor, "batch 3 side side"]], Float[Tensor, "batch ..."]]
    mixup: float = 0.0
    resident: UInt8[Tensor, "images side side 3"] | None = None
    reader: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1), repr=False)
    asked: dict[bytes, Future] = field(default_factory=dict, repr=False)
    truncated: int = 0
    tokens: int = 1

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def device(self) -> torch.device:
        """The device that batches are made on."""
        return self.labels.device

    @property
    def lengths(self) -> Int[Tensor, " images"]:
        """Tokens of each image, by which batches are planned: the same for all."""
        return torch.full((len(self),), self.tokens)

    def to(self, device: torch.device | str, *, room: int | None = None) -> Images:
        """The same examples on a device. room: bytes of pixels that it may hold, by default as said above."""
        device = torch.device(device)
        fits = len(self) * self.file[0].nbytes <= (space(device) if room is None else room)
        resident = self.brought(device) if fits else None
        return replace(self, labels=self.labels.to(device), resident=resident, asked={})

    def brought(self, device: torch.device) -> UInt8[Tensor, "images side side 3"]:
        """All pixels, copied to the device a block at a time."""
        pixels = torch.empty((len(self), *self.file.shape[1:]), dtype=torch.uint8, device=device)
        for start in range(0, len(self), BLOCK):
            block = torch.arange(start, min(start + BLOCK, len(self)))
            pixels[start : start + BLOCK] = self.read(block).to(device)
        return pixels

    def read(self, indices: Int[Tensor, " batch"]) -> UInt8[Tensor, "batch side side 3"]:
        """Pixels from the file, in pinned memory if the device is a GPU."""
        shape = (len(indices), *self.file.shape[1:])
        found = torch.empty(shape, dtype=torch.uint8, pin_memory=self.device.type == "cuda")
        # clip: the other modes would fill a second array first
        np.take(self.file, self.rows[indices.numpy()], axis=0, out=found.numpy(), mode="clip")
        return found

    def expect(self, indices: Int[Tensor, " batch"]) -> None:
        """Start to read these images, which `staged` will be asked for."""
        if self.resident is not None:
            return
        if len(self.asked) >= AHEAD:
            self.asked.pop(next(iter(self.asked)))
        self.asked[key(indices)] = self.reader.submit(self.read, indices)

    @property
    def held(self) -> bool:
        """Whether batches are made of what the device holds."""
        return self.resident is not None

    def width(self, indices: Int[Tensor, " batch"]) -> int:
        """Nothing: all images are of one size."""
        return 0

    def staged(self, indices: Int[Tensor, " batch"], there: Int[Tensor, " batch"]) -> tuple[Tensor, ...]:
        """What `made` takes of these images: pixels too unless the device holds all. there: as `indices`."""
        if self.held:
            return (there,)
        waiting = self.asked.pop(key(indices), None)
        found = waiting.result() if waiting else self.read(indices)
        return there, found.to(self.device, non_blocking=True)

    def made(
        self,
        there: Int[Tensor, " batch"],
        pixels: UInt8[Tensor, "batch side side 3"] | None = None,
        *,
        width: int,
    ) -> tuple[dict[str, Tensor], Tensor | tuple]:
        """Views and labels, by operations on the device alone; with mixup (labels, other labels, share)."""
        stored = self.resident[there] if pixels is None else pixels
        views, labels = self.view(stored.permute(0, 3, 1, 2)), self.labels[there]
        if self.mixup:
            views, labels = mixup(views, labels, self.mixup)
        return {"pixels": views}, labels


def key(indices: Int[Tensor, " batch"]) -> bytes:
    """The key of a batch that is read ahead."""
    return indices.numpy().tobytes()


def space(device: torch.device) -> int:
    """Bytes that the pixels of one split may take on a device."""
    return torch.cuda.mem_get_info(device)[0] // 4 if device.type == "cuda" else IN_MEMORY


def image_examples(
    pixels: Path,
    table: pd.DataFrame,
    *,
    training: bool,
    size: int,
    mean: Sequence[float],
    std: Sequence[float],
    augment: str = "none",
    crop_scale: float = 1.0,
    flip: bool = False,
    mixup: float = 0.0,
    test_zoom: float = 1.0,
    views: int = 1,
    tokens: int = 1,
    kernel: str = "bilinear",
) -> Images:
    """The images of `table` (id, label, image: the row in the file `pixels`), not on a device yet.

    size: pixels a side that the backbone takes. mean, std: of each channel, of values from 0 to 1.
    Training applies `augment` (a name of AUGMENTATIONS), whose resized_crop keeps at least the share
    `crop_scale` of the area, then `flip`, and mixup with that alpha of its Beta distribution (0: none).
    Evaluation scales whole images to test_zoom * size and takes the center, or with `views` = 5 the four
    corners too. What is left out changes no image. tokens: tokens of a view in the backbone, by which
    batches are planned. kernel: how views are scaled (`augment.KERNELS`). Raises BadInput for a file of
    another form and for settings that cannot be used.
    """
    file = mapped(pixels)
    rows = table["image"].to_numpy(np.int64)
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(file):
        raise BadInput(
            f"{pixels} has {counted(len(file), 'image')}, but row {rows.max()} is asked for; make it again"
        )
    check_views(views, test_zoom, size)
    change = named(AUGMENTATIONS, augment, "augment")
    in_training = partial(training_views, change=change, crop_scale=crop_scale, flip=flip)
    in_evaluation = partial(evaluation_views, test_zoom=test_zoom, views=views)
    return Images(
        file=file,
        rows=rows,
        labels=torch.from_numpy(table["label"].to_numpy(np.int64, copy=True)),
        names=list(table["id"]),
        view=partial(
            in_training if training else in_evaluation, size=size, mean=mean, std=std, kernel=kernel
        ),
        mixup=mixup if training else 0.0,
        tokens=tokens * (1 if training else views),
    )


def mapped(pixels: Path) -> np.memmap:
    """The array of a file, mapped into memory; raises BadInput, with what to do, for another form."""
    try:
        with reading(pixels):
            file = np.lib.format.open_memmap(pixels, mode="r")
            shape = file.shape
            if file.dtype != np.uint8 or len(shape) != 4 or shape[2:] != (shape[1], 3):
                raise BadInput(f"{pixels}: holds {file.dtype} {shape}, not uint8 (images, side, side, 3)")
    except BadInput as error:
        raise BadInput(f"{error}; delete it, and snakemake makes it anew") from None
    return file


def training_views(
    pixels: Tensor, *, size: int, mean, std, kernel: str, change: Callable, crop_scale: float, flip: bool
):
    """Random views, for training."""
    changed = change(pixels, size, crop_scale, kernel)
    return normalised(random_flip(changed) if flip else changed, mean, std)


def evaluation_views(pixels: Tensor, *, size: int, mean, std, kernel: str, test_zoom: float, views: int):
    """Fixed views, for evaluation: [batch, 3, size, size] or [batch, 5, 3, size, size]."""
    whole = resized(pixels, round(test_zoom * size), kernel=kernel)
    return normalised(five_crops(whole, size) if views == 5 else center_crop(whole, size), mean, std)


def whole_image(pixels: Tensor, size: int, least: float, kernel: str) -> Tensor:
    """The whole image."""
    return resized(pixels, size, kernel=kernel)


def padded_crop(pixels: Tensor, size: int, least: float, kernel: str) -> Tensor:
    """A crop that may reach an eighth of the side beyond the image."""
    return random_crop(resized(pixels, size, kernel=kernel), size, border=size // 8)


def resized_crop(pixels: Tensor, size: int, least: float, kernel: str) -> Tensor:
    """A crop of at least the share `least` of the area, resized (LPT appendix B)."""
    return scaled(pixels, random_windows(pixels, (least, 1.0)), size, kernel=kernel)


AUGMENTATIONS = {"none": whole_image, "pad_crop": padded_crop, "resized_crop": resized_crop}
