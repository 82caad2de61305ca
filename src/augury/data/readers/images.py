"""One image file: its header is read first, then its pixels, within a limit of pixels."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image

from augury._base.text import cause
from augury.data.limits import MOST_PIXELS
from augury.data.readers.bad import Unreadable
from augury.data.readers.pictures import ALPHA_MODES, is_grey, to_pixels

EXTENSIONS = (
    *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".gif", ".bmp", ".webp", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
)
# Formats that are tried: not those, such as EPS, for which Pillow starts another program.
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")

_TURN = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ORIENTATION = 274  # the EXIF tag: how the camera was held


@dataclass(frozen=True)
class Header:
    """What is known of an image before it is decoded; `size` is (height, width), upright."""

    size: tuple[int, int]
    grey: bool
    alpha: bool
    deep: bool
    """More than 8 bits per pixel and channel."""


def read_header(path: Path) -> Header:
    """Inspect an image without decoding it."""
    with _opened(path) as image:
        width, height = image.size
        size = (width, height) if _orientation(image) >= 5 else (height, width)
        alpha = image.mode in ALPHA_MODES or "transparency" in image.info
        deep = image.mode in ("I", "F") or image.mode.startswith("I;16")
        return Header(size, is_grey(image), alpha, deep)


def decode(path: Path, grey: bool, size: tuple[int, int]) -> np.ndarray:
    """Return an image as bytes, channels × height × width, upright and resized to `size`."""
    with _opened(path) as image:
        turn = _TURN.get(_orientation(image))
        side = 2 * max(size)
        image.draft(None, (side, side))  # a large JPEG is decoded at a fraction of its size
        image.load()
        upright = image if turn is None else image.transpose(turn)
        return to_pixels(upright, grey, size)


def decode_bytes(data: bytes) -> Image.Image:
    """Return an image that is encoded in bytes, upright."""
    with _checked(io.BytesIO(data)) as image:
        image.load()
        turn = _TURN.get(_orientation(image))
        return image if turn is None else image.transpose(turn)


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    try:
        with open(path, "rb") as file, _checked(file) as image:
            yield image
    except OSError as error:
        raise Unreadable(cause(error)) from error


@contextmanager
def _checked(file: IO[bytes]) -> Iterator[Image.Image]:
    try:
        image = _identify(file)
        width, height = image.size
        if width * height > MOST_PIXELS:
            raise Unreadable(
                f"it is {width:,} × {height:,} pixels, above the limit of "
                f"{MOST_PIXELS // 1_000_000} megapixels"
            )
        yield image
    except Unreadable:
        raise
    # Decoders fail on damaged files in many ways; all of them mean that this file is bad.
    except Exception as error:  # a damaged picture may make Pillow raise anything
        raise Unreadable(cause(error)) from error


def _identify(file: IO[bytes]) -> Image.Image:
    """Open an image as `Image.open` does, without its warnings about size: ours is stricter."""
    Image.init()
    start = file.read(16)
    for name in _FORMATS:
        if name not in Image.OPEN:  # Pillow was built without it
            continue
        factory, accept = Image.OPEN[name]
        accepted = accept is None or accept(start)
        if not accepted or isinstance(accepted, str):  # a string says why not
            continue
        file.seek(0)
        try:
            # Not told the file's name, Pillow maps no memory, where it garbles turned TIFF files.
            return factory(file, "")
        except (SyntaxError, IndexError, TypeError, struct.error):
            continue
    raise Unreadable("it is not an image that Pillow can read" if start else "the file is empty")


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation, 1 if there is none; Pillow turns TIFF files itself."""
    if "exif" not in image.info or image.format == "TIFF":
        return 1
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # damaged EXIF data say nothing about the pixels
        return 1
