"""Decoding of one image file into square RGB bytes; `inputs/images.py` makes batches of what is decoded."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import ExifTags, Image, PngImagePlugin

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")  # some other formats make PIL start programs
ENDINGS = {".jpg", ".jpeg", ".jpe", ".jif", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"}
ENDINGS |= {".ppm", ".pgm", ".pbm", ".pnm"}
MOST = 400_000_000  # pixels of an image, that is decoded; PIL's own limit is lower
LEAST_BITS = 15  # in use of 16, below which the range of a set's images is another
TURNED = {  # EXIF's orientation -> how the image stands upright
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
Image.MAX_IMAGE_PIXELS = None
PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY = 2**28  # bytes of remarks, which are not read
SEVERAL = "several"  # whether a file has more images than the first
LONGEST = 8  # ratio of the sides beyond which an image is cropped before it is scaled
Content = bytes | Path | UInt8[np.ndarray, "height width 3"]


def decoded(
    content: Content,
    side: int,
    *,
    fit: str = "crop",
    border: int = 0,
    upright: bool = False,
    bits: int | None = None,
    transparency: bool | None = None,
    most: int = MOST,
) -> tuple[UInt8[np.ndarray, "side side 3"], str]:
    """The image as RGB, `side` pixels a side, and its stored mode (RGB, L, CMYK, RGBA on white, ...).

    Of 16 bits the mode says how many are in use, if those are less than 15.

    fit: "crop" scales the shorter side and crops the middle; "squash" scales both sides, whatever the shape.
    border: pixels that are cropped from each side first. upright: whether to rotate it as its EXIF data say.
    bits: in use of an image of 16. transparency: whether a fourth band is; by default it must look so. most:
    pixels that it may have. Raises PIL's own exceptions for a damaged image.
    """
    stored = Image.fromarray(content) if isinstance(content, np.ndarray) else opened(content, most)
    image = in_rgb(turned(stored) if upright else stored, bits, transparency)
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
    return np.asarray(image), mode_of(stored, bits, transparency)


def mode_of(stored: Image.Image, bits: int | None, transparency: bool | None) -> str:
    """How an image was stored, for a report."""
    several = " (first of several)" if stored.info.get(SEVERAL) else ""
    if stored.mode.startswith("I;16") and bits is None and (used := bits_in(stored)) < LEAST_BITS:
        return f"{stored.mode} with {used} bits in use{several}"
    if not stored.has_transparency_data:
        return stored.mode + several
    kept = "without its last band" if transparency is False else "on white"
    return f"{stored.mode} {kept}{several}"


def bits_in(stored: Image.Image) -> int:
    """The bits that the largest value of an image takes."""
    return int(np.asarray(stored).max(initial=0)).bit_length()


def turned(stored: Image.Image) -> Image.Image:
    """The image as its EXIF says it stands. PIL's own way writes the EXIF anew, which may be impossible."""
    how = TURNED.get(stored.getexif().get(ExifTags.Base.Orientation))
    return stored if how is None else stored.transpose(how)


def in_rgb(stored: Image.Image, bits: int | None = None, transparency: bool | None = None) -> Image.Image:
    """The image as RGB. Transparent parts become white, because the colours under them are never seen.

    PIL would clip values of more than 8 bits. Those of 16 bits are scaled; 32 bits have no known range.
    Raises ValueError where most of the last band is half-transparent, or all of it transparent: then it is no
    transparency.
    """
    if stored.mode in ("I", "F"):
        raise ValueError(f"32 bits a pixel, mode {stored.mode}; save it with 8 or 16")
    if stored.mode.startswith("I;16"):
        scaled = np.asarray(stored) >> max(0, (bits or 16) - 8)
        stored = Image.fromarray(np.minimum(scaled, 255).astype(np.uint8))
    if not stored.has_transparency_data:
        return stored.convert("RGB")
    seen = stored.convert("RGBA")
    if transparency is False:
        return Image.merge("RGB", seen.split()[:3])
    if transparency is None and other_band(seen):
        raise ValueError(
            "its fourth band is no plain transparency; transparency: false in its row leaves the band out, "
            "true takes it for one"
        )
    return Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")


def other_band(image: Image.Image) -> bool:
    """Whether a fourth band is no transparency: most of it is between, or nothing would be seen."""
    last = np.asarray(image.getchannel("A"))
    return bool(((last > 0) & (last < 255)).mean() > 0.5 or not last.any())


def middle(image: Image.Image, width: int, height: int) -> Image.Image:
    """The middle of an image."""
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def opened(content: bytes | Path, most: int = MOST) -> Image.Image:
    """An encoded image, read completely; raises ValueError for one of more than `most` pixels."""
    source = io.BytesIO(content) if isinstance(content, bytes) else content
    with Image.open(source, formats=FORMATS) as image:
        if image.width * image.height > most:
            raise ValueError(
                f"{image.width:,} x {image.height:,} pixels are more than {most:,}; raise most_pixels in its "
                "row, or save it smaller"
            )
        image.info[SEVERAL] = getattr(image, "is_animated", False)  # which a closed file cannot tell
        image.load()
    if image.format == "PPM" and image.mode == "I":  # PIL has no other mode for its 16 bits
        return Image.fromarray(np.asarray(image).astype(np.uint16))
    return image
