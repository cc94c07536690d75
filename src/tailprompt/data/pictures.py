"""One image file as square RGB bytes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")  # PIL knows others that start programs
ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm"}
Content = bytes | Path | UInt8[np.ndarray, "height width 3"]


def decoded(
    content: Content, side: int, *, fit: str = "crop", border: int = 0
) -> tuple[UInt8[np.ndarray, "side side 3"], str]:
    """The image as RGB, `side` pixels a side, and the mode it was stored in (RGB, L, CMYK, P, RGBA, ...).

    fit: "crop" scales the shorter side and cuts out the middle; "squash" scales the whole image, whatever
    its shape. border: pixels to cut off all around before. Raises what PIL does for a damaged image.
    """
    stored = Image.fromarray(content) if isinstance(content, np.ndarray) else opened(content)
    image = stored.convert("RGBA").convert("RGB") if stored.mode in ("P", "PA") else stored.convert("RGB")
    if border:
        image = image.crop((border, border, image.width - border, image.height - border))
    if image.size != (side, side):
        scale = side / min(image.size)
        sizes = (max(side, round(length * scale)) if fit == "crop" else side for length in image.size)
        image = image.resize(tuple(sizes), Image.Resampling.BICUBIC)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        image = image.crop((left, top, left + side, top + side))
    return np.asarray(image), stored.mode


def opened(content: bytes | Path) -> Image.Image:
    """An encoded image, read to its end."""
    source = io.BytesIO(content) if isinstance(content, bytes) else content
    with Image.open(source, formats=FORMATS) as image:
        image.load()
    return image
