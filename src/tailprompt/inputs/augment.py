"""Views of a batch of images on the device: a few tensor operations for all of them, drawn for each.

Without a generator, chance comes from the device's default one, which a killed run takes up again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import torch
from jaxtyping import Float, Int, UInt8
from torch import Generator, Tensor
from torch.distributions import Beta

Images = UInt8[Tensor, "batch 3 height width"] | Float[Tensor, "batch 3 height width"]
Windows = Int[Tensor, "batch 4"]  # top, left, height and width in pixels
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as timm's default
RATIO = (3 / 4, 4 / 3)  # width to height of a random window (Szegedy et al. 2015, section 6)
DRAWS = 10  # of a window, until one lies inside the image


def random_crop(images: Images, size: int, generator: Generator | None = None, *, border: int = 0) -> Images:
    """A window of `size` pixels a side from each image, its corner drawn for each.

    border: pixels that a window may reach beyond the image, which goes on there as its mirror.
    """
    batch, _, height, width = images.shape
    device = images.device
    high, wide = height - size + border + 1, width - size + border + 1
    top = torch.randint(-border, high, (batch, 1), generator=generator, device=device)
    left = torch.randint(-border, wide, (batch, 1), generator=generator, device=device)
    side = torch.arange(size, device=device)
    rows, columns = mirrored(top + side, height), mirrored(left + side, width)
    each = torch.arange(batch, device=device)[:, None, None, None]
    channels = torch.arange(3, device=device)[None, :, None, None]
    return images[each, channels, rows[:, None, :, None], columns[:, None, None, :]]


def mirrored(places: Int[Tensor, "batch size"], side: int) -> Int[Tensor, "batch size"]:
    """Places beyond the pixels 0 to side - 1, thrown back at the first and the last."""
    return (side - 1) - ((side - 1) - places.abs()).abs()


def random_flip(images: Images, generator: Generator | None = None) -> Images:
    """Half of the images mirrored, left to right."""
    chosen = torch.rand(len(images), generator=generator, device=images.device) < 0.5
    return torch.where(chosen[:, None, None, None], images.flip(-1), images)


def center_crop(images: Images, size: int) -> Images:
    """The middle `size` pixels a side of each image; an odd pixel falls as in torchvision."""
    top, left = (round((side - size) / 2) for side in images.shape[-2:])
    return images[..., top : top + size, left : left + size]


def five_crops(images: Images, size: int) -> Images:
    """The four corners and the middle of each image, [batch, 5, 3, size, size], in torchvision's order."""
    corners = [
        images[..., :size, :size],
        images[..., :size, -size:],
        images[..., -size:, :size],
        images[..., -size:, -size:],
    ]
    return torch.stack([*corners, center_crop(images, size)], dim=1)


def random_windows(images: Images, scale: tuple[float, float], generator: Generator | None = None) -> Windows:
    """A window of each image, of a share of its area in `scale` and a shape in RATIO.

    The first of DRAWS that lies inside the image, else the whole of it (Szegedy et al. 2015, section 6, as
    torchvision has it; its fallback differs for images longer than RATIO, which square ones are not).
    """
    batch, _, height, width = images.shape
    draws = torch.rand(batch, 4, DRAWS, generator=generator, device=images.device)
    area = height * width * (scale[0] + (scale[1] - scale[0]) * draws[:, 0])
    low, high = map(math.log, RATIO)
    ratio = (low + (high - low) * draws[:, 1]).exp()
    tall, wide = (area / ratio).sqrt().round(), (area * ratio).sqrt().round()
    inside = (tall > 0) & (tall <= height) & (wide > 0) & (wide <= width)
    first = inside.int().argmax(1, keepdim=True)
    tall, wide, down, right = (value.gather(1, first) for value in (tall, wide, draws[:, 2], draws[:, 3]))
    found = inside.any(1, keepdim=True)
    tall, wide = torch.where(found, tall, height), torch.where(found, wide, width)
    top, left = (down * (height - tall + 1)).floor(), (right * (width - wide + 1)).floor()
    return torch.cat([top, left, tall, wide], dim=1).long()


def resized(images: Images, size: int) -> Images:
    """Whole images scaled to `size` pixels a side, bilinear and smoothed where they shrink."""
    height, width = images.shape[-2:]
    if (height, width) == (size, size):
        return images
    start = torch.zeros(1, device=images.device)
    rows, columns = (triangles(start, start + side, side, size) for side in (height, width))
    return rows @ images.float() @ columns.mT


def scaled(images: Images, windows: Windows, size: int) -> Float[Tensor, "batch 3 size size"]:
    """A window of each image scaled to `size` pixels a side.

    As cutting each out and resizing it (bilinear, antialias) would, but for the rounding to bytes: a linear
    map of rows and one of columns, so two matrix products for the whole batch.
    """
    top, left, tall, wide = windows.float().unbind(1)
    rows = triangles(top, tall, images.shape[-2], size)[:, None]
    columns = triangles(left, wide, images.shape[-1], size)[:, None]
    return rows @ images.float() @ columns.mT


def triangles(
    start: Float[Tensor, " batch"], length: Float[Tensor, " batch"], side: int, size: int
) -> Float[Tensor, "batch size side"]:
    """Weights of `side` pixels in each of the `size` that a window (start, length in pixels) is scaled to."""
    pixels = torch.arange(side, device=start.device)
    start, length = start[:, None, None], length[:, None, None]
    zoom = length / size
    centers = start + zoom * (torch.arange(size, device=start.device)[:, None] + 0.5)
    weights = (1 - (pixels + 0.5 - centers).abs() / zoom.clamp(min=1)).clamp(min=0)
    weights = weights * ((pixels >= start) & (pixels < start + length))
    return weights / weights.sum(-1, keepdim=True)


def normalised(images: Images, mean: Sequence[float] = MEAN, std: Sequence[float] = STD) -> Tensor:
    """Pixels of 0 to 255 to floats, less the mean and over the deviation of each channel."""
    shift, spread = (channels(tuple(values), images.device) for values in (mean, std))
    return (images.float() / 255 - shift) / spread


@cache
def channels(values: tuple[float, float, float], device: torch.device) -> Float[Tensor, "3 1 1"]:
    """A number for each channel, brought to a device once: each time would make the host wait for it."""
    return torch.tensor(values, device=device).view(3, 1, 1)


def mixup(
    images: Float[Tensor, "batch 3 height width"], labels: Int[Tensor, " batch"], alpha: float
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """Each image mixed with another of the batch, and (its labels, the other's, its share).

    Zhang et al. (2018), section 2: one share for the batch, from Beta(alpha, alpha).
    """
    strength = torch.full((), alpha, device=images.device)
    share = Beta(strength, strength, validate_args=False).sample()
    other = torch.randperm(len(images), device=images.device)
    return share * images + (1 - share) * images[other], (labels, labels[other], share)
