"""Pillow images turned to arrays of bytes, whatever their mode."""

from __future__ import annotations

import numpy as np
from PIL import Image

GREY_MODES = ("1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")
ALPHA_MODES = ("LA", "La", "PA", "RGBA", "RGBa")


def is_grey(image: Image.Image) -> bool:
    """Return whether an image's mode has no colour; palettes count as colour."""
    return image.mode in GREY_MODES


def to_pixels(image: Image.Image, grey: bool, size: tuple[int, int] | None = None) -> np.ndarray:
    """Return an image as bytes, channels × height × width; alpha is dropped.

    Parameters
    ----------
    image
        Of any mode: 16 bits are cut to the upper 8, palettes and CMYK become RGB.
    grey
        One channel, or three.
    size
        Height and width to resize to, with antialiasing.
    """
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        image = Image.fromarray(_to_bytes(np.asarray(image), image.mode))
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")  # Pillow warns if it is turned to RGB directly
    image = image.convert("L" if grey else "RGB")
    if size is not None and image.size != size[::-1]:
        height, width = size
        image = image.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=3.0)
    pixels = np.asarray(image)
    return pixels[None] if grey else pixels.transpose(2, 0, 1)


def _to_bytes(values: np.ndarray, mode: str) -> np.ndarray:
    low, high = values.min(), values.max()
    if mode == "F":
        if not (low >= 0 and high <= 1):  # NaN fails this too
            raise ValueError(f"its float pixels go from {low:g} to {high:g}; save it with 8 bits")
        return np.round(values * 255).astype(np.uint8)
    if low < 0 or high > 0xFFFF:
        raise ValueError(f"its pixels go from {low} to {high}; save it with 8 or 16 bits")
    return (values.astype(np.uint32) >> 8).astype(np.uint8)
