"""Random views of a batch of images on the device: one gather for crops, one for flips."""

from __future__ import annotations

import torch
from jaxtyping import UInt8
from torch import Generator, Tensor

Images = UInt8[Tensor, "batch 3 height width"]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as timm's default


def random_crop(images: Images, size: int, generator: Generator) -> Images:
    """A window of `size` pixels a side from each image, its corner drawn for each."""
    batch, _, height, width = images.shape
    device = images.device
    top = torch.randint(0, height - size + 1, (batch, 1), generator=generator, device=device)
    left = torch.randint(0, width - size + 1, (batch, 1), generator=generator, device=device)
    side = torch.arange(size, device=device)
    rows, columns = (top + side)[:, None, :, None], (left + side)[:, None, None, :]
    each = torch.arange(batch, device=device)[:, None, None, None]
    channels = torch.arange(3, device=device)[None, :, None, None]
    return images[each, channels, rows, columns]


def random_flip(images: Images, generator: Generator) -> Images:
    """Half of the images mirrored, left to right."""
    chosen = torch.rand(len(images), generator=generator, device=images.device) < 0.5
    return torch.where(chosen[:, None, None, None], images.flip(-1), images)


def center_crop(images: Images, size: int) -> Images:
    """The middle `size` pixels a side of each image."""
    top, left = (images.shape[-2] - size) // 2, (images.shape[-1] - size) // 2
    return images[..., top : top + size, left : left + size]


def normalised(images: Images) -> Tensor:
    """Bytes to floats of ImageNet's mean 0 and deviation 1 a channel."""
    mean, std = (torch.tensor(value, device=images.device).view(1, 3, 1, 1) for value in (MEAN, STD))
    return (images.float() / 255 - mean) / std
