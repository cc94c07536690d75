"""Decoding of one image file into square RGB bytes; `inputs/images.py` makes batches of what is decoded."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")  # some other formats make PIL start programs
ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm"}
LONGEST = 8  # ratio of the sides beyond which an image is cropped before it is scaled
Content = bytes | Path | UInt8[np.ndarray, "height width 3"]


def decoded(
    content: Content, side: int, *, fit: str = "crop", border: int = 0, upright: bool = False
) -> tuple[UInt8[np.ndarray, "side side 3"], str]:
    """The image as RGB, `side` pixels a side, and its stored mode (RGB, L, CMYK, RGBA on white, ...).

    fit: "crop" scales the shorter side and crops the middle; "squash" scales both sides, whatever the shape.
    border: pixels that are cropped from each side first. upright: whether to rotate it as its EXIF data say.
    Raises PIL's own exceptions for a damaged image.
    """
    stored = Image.fromarray(content) if isinstance(content, np.ndarray) else opened(content)
    image = in_rgb(ImageOps.exif_transpose(stored) if upright else stored)
    if 2 * border >= min(image.size):
        raise ValueError(f"a border of {border} leaves nothing of {image.width} x {image.height} pixels")
    if border:
        image = image.crop((border, border, image.width - border, image.height - border))
    if fit == "crop" and max(image.size) > LONGEST * min(image.size):  # scaled, it might fill the memory
        image = middle(image, *(min(length, LONGEST * min(image.size)) for length in image.size))
    if image.size != (side, side):
        scale = side / min(image.size)
        sizes = (max(side, round(length * scale)) if fit == "crop" else side for length in image.size)
        image = image.resize(tuple(sizes), Image.Resampling.BICUBIC)
        image = middle(image, side, side)
    return np.asarray(image), f"{stored.mode} on white" if stored.has_transparency_data else stored.mode


def in_rgb(stored: Image.Image) -> Image.Image:
    """The image as RGB. Transparent parts become white, because the colours under them are never seen.

    PIL would clip values of more than 8 bits. Those of 16 bits are scaled; 32 bits have no known range.
    """
    if stored.mode in ("I", "F"):
        raise ValueError(f"32 bits a pixel, mode {stored.mode}; save it with 8 or 16")
    if stored.mode.startswith("I;16"):
        stored = Image.fromarray((np.asarray(stored) >> 8).astype(np.uint8))
    if not stored.has_transparency_data:
        return stored.convert("RGB")
    seen = stored.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")


def middle(image: Image.Image, width: int, height: int) -> Image.Image:
    """The middle of an image."""
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def opened(content: bytes | Path) -> Image.Image:
    """An encoded image, read completely."""
    source = io.BytesIO(content) if isinstance(content, bytes) else content
    with Image.open(source, formats=FORMATS) as image:
        image.load()
    return image
