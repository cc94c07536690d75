"""Augmentation of a batch of images on the device: one set of tensor operations, a random draw per image.

Without a generator, the device's default one is used, whose state a resumed run restores.
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
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, timm's default
RATIO = (3 / 4, 4 / 3)  # width to height of a random window (Szegedy et al. 2015, section 6)
DRAWS = 10  # attempts to draw a window that lies inside the image


def random_crop(images: Images, size: int, generator: Generator | None = None, *, border: int = 0) -> Images:
    """A random window of each image, `size` pixels a side.

    border: pixels by which a window may reach beyond the image, which is reflected there.
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
    """Pixel indices, with those outside 0 to side - 1 reflected at the first and the last pixel."""
    return (side - 1) - ((side - 1) - places.abs()).abs()


def random_flip(images: Images, generator: Generator | None = None) -> Images:
    """Images, each mirrored left to right with probability one half."""
    chosen = torch.rand(len(images), generator=generator, device=images.device) < 0.5
    return torch.where(chosen[:, None, None, None], images.flip(-1), images)


def center_crop(images: Images, size: int) -> Images:
    """The center of each image, `size` pixels a side; an odd margin is rounded as in torchvision."""
    top, left = (round((side - size) / 2) for side in images.shape[-2:])
    return images[..., top : top + size, left : left + size]


def five_crops(images: Images, size: int) -> Images:
    """The four corners and the center of each image, [batch, 5, 3, size, size], in torchvision's order."""
    corners = [
        images[..., :size, :size],
        images[..., :size, -size:],
        images[..., -size:, :size],
        images[..., -size:, -size:],
    ]
    return torch.stack([*corners, center_crop(images, size)], dim=1)


def random_windows(images: Images, scale: tuple[float, float], generator: Generator | None = None) -> Windows:
    """A random window of each image: its share of the area lies in `scale`, its width to height in RATIO.

    It is the first of DRAWS that lies inside the image, or the whole image (Szegedy et al. 2015, section 6).
    So does torchvision, whose fallback differs only for images longer than RATIO; ours are square.
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


def resized(images: Images, size: int, *, kernel: str = "bilinear") -> Images:
    """Whole images scaled to `size` pixels a side, with antialias. kernel: a name of KERNELS."""
    height, width = images.shape[-2:]
    if (height, width) == (size, size):
        return images
    start = torch.zeros(1, device=images.device)
    rows, columns = (weights(start, start + side, side, size, kernel) for side in (height, width))
    made = rows @ images.float() @ columns.mT
    return made.clamp(0, 255) if kernel == "bicubic" else made  # which overshoots at edges


def scaled(
    images: Images, windows: Windows, size: int, *, kernel: str = "bilinear"
) -> Float[Tensor, "batch 3 size size"]:
    """A window of each image scaled to `size` pixels a side. kernel: a name of KERNELS.

    The result is that of cropping and resizing each (with antialias), without rounding to bytes. Scaling is a
    linear map of rows and one of columns, so the whole batch takes two matrix products.
    """
    top, left, tall, wide = windows.float().unbind(1)
    rows = weights(top, tall, images.shape[-2], size, kernel)[:, None]
    columns = weights(left, wide, images.shape[-1], size, kernel)[:, None]
    made = rows @ images.float() @ columns.mT
    return made.clamp(0, 255) if kernel == "bicubic" else made  # which overshoots at edges


def weights(
    start: Float[Tensor, " batch"], length: Float[Tensor, " batch"], side: int, size: int, kernel: str
) -> Float[Tensor, "batch size side"]:
    """Weights of an image's `side` pixels in the `size` pixels that a window (start, length) is scaled to."""
    pixels = torch.arange(side, device=start.device)
    start, length = start[:, None, None], length[:, None, None]
    zoom = length / size
    centers = start + zoom * (torch.arange(size, device=start.device)[:, None] + 0.5)
    weights = KERNELS[kernel]((pixels + 0.5 - centers).abs() / zoom.clamp(min=1))
    weights = weights * ((pixels >= start) & (pixels < start + length))
    return weights / weights.sum(-1, keepdim=True)


def triangle(away: Tensor) -> Tensor:
    """The weight of a pixel that is so many pixels away in linear interpolation."""
    return (1 - away).clamp(min=0)


def cubic(away: Tensor) -> Tensor:
    """The same in cubic interpolation (Keys 1981, Eq. 15, with a = -1/2, as PIL and torch take it)."""
    near = (1.5 * away - 2.5) * away**2 + 1
    far = ((-0.5 * away + 2.5) * away - 4) * away + 2
    return torch.where(away < 1, near, torch.where(away < 2, far, 0.0))


def normalised(images: Images, mean: Sequence[float] = MEAN, std: Sequence[float] = STD) -> Tensor:
    """Pixels from 0 to 255 as floats, standardised by the mean and deviation of each channel."""
    shift, spread = (channels(tuple(values), images.device) for values in (mean, std))
    return (images.float() / 255 - shift) / spread


@cache
def channels(values: tuple[float, float, float], device: torch.device) -> Float[Tensor, "3 1 1"]:
    """A number for each channel, copied to a device once: each copy would make the host wait."""
    return torch.tensor(values, device=device).view(3, 1, 1)


def mixup(
    images: Float[Tensor, "batch 3 height width"], labels: Int[Tensor, " batch"], alpha: float
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """Each image mixed with another of the batch, and (labels, labels of the others, share of the first).

    The batch has one share, drawn from Beta(alpha, alpha) (Zhang et al. 2018, section 2).
    """
    strength = torch.full((), alpha, device=images.device)
    share = Beta(strength, strength, validate_args=False).sample()
    other = torch.randperm(len(images), device=images.device)
    return share * images + (1 - share) * images[other], (labels, labels[other], share)


KERNELS = {"bilinear": triangle, "bicubic": cubic}
