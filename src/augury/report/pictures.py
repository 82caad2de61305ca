"""A gallery's arrays as pictures that a page can hold: data URIs, and lines for series."""

from __future__ import annotations

import base64
import io
import wave as wave_file
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from augury.results.ranking import Gallery


_SHOWN = 72  # pixels of the longer side on the screen
_PIXELS = 6e6  # of all pictures of a page together: some megabytes
_WIDTH, _HEIGHT, _POINTS = 116, 56, 116
_SOUND_WIDTH, _SOUND_HEIGHT, _COLUMNS = 168, 84, 120
_COLOURS = matplotlib.colormaps["magma"](np.arange(256), bytes=True)[:, :3]


@dataclass(frozen=True)
class Picture:
    """One picture: an image's URI, the points of a series' channels, or sound with both."""

    width: int
    height: int
    uri: str = ""
    lines: tuple[str, ...] = ()
    pixelated: bool = False
    audio: str = ""
    """The URI of a recording to play."""


@dataclass(frozen=True)
class Strip:
    """An original and its views."""

    original: Picture
    views: tuple[Picture, ...]


def strips(gallery: Gallery) -> Mapping[str, tuple[Strip, ...]]:
    """Draw each candidate's strips: one for each original."""
    count = sum(v.shape[0] * (v.shape[1] + 1) for v in gallery.views.values())
    side = max(24, int((_PIXELS / max(count, 1)) ** 0.5))
    drawn = {}
    for spec, views in gallery.views.items():
        originals = gallery.originals
        if originals.ndim == views.ndim:  # with an axis of views of its own
            originals = originals[:, 0]
        if gallery.rate is not None:
            draw = partial(_recordings, rate=gallery.rate)
        else:
            draw = _traces if views.ndim == 4 else _images
        drawn[spec] = tuple(draw(o, v, side) for o, v in zip(originals, views, strict=True))
    return drawn


def _images(original: np.ndarray, views: np.ndarray, side: int) -> Strip:
    return Strip(image(original, side), tuple(image(view, side) for view in views))


def image(pixels: np.ndarray, side: int = 256) -> Picture:
    """Encode an image (uint8, height × width × 3), made smaller where it is larger than `side`."""
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    if np.array_equal(pixels[..., :1].repeat(pixels.shape[-1], -1), pixels):
        picture = picture.convert("L")
    if max(picture.size) > side:
        picture.thumbnail((side, side))
        if (
            picture.mode == "RGB"
        ):  # halves the size; the octree is ten times faster than the default
            picture = picture.quantize(256, method=Image.Quantize.FASTOCTREE)
    uri = _png(picture)
    width, height = picture.size
    scale = _SHOWN / max(width, height)
    if scale > 1:  # whole multiples keep every pixel square
        scale = int(scale)
    shown = max(1, round(width * scale)), max(1, round(height * scale))
    return Picture(*shown, uri=uri, pixelated=scale > 1)


def _png(picture: Image.Image) -> str:
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _recordings(original: np.ndarray, views: np.ndarray, _side: int, rate: int) -> Strip:
    loudest = max(float(np.abs(part).max()) for part in (original, views)) or 1.0
    drawn = [recording(wave[0] / loudest, rate) for wave in (original, *views)]
    return Strip(drawn[0], tuple(drawn[1:]))


def recording(wave: np.ndarray, rate: int) -> Picture:
    """Draw the spectrogram of a wave in [-1, 1], 60 dB deep, and encode it to be played.

    Low frequencies are at the bottom. Samples have 8 bits, which keeps the page small.
    """
    size = min(256, len(wave))
    starts = np.linspace(0, len(wave) - size, min(_COLUMNS, len(wave))).round().astype(int)
    frames = wave[starts[:, None] + np.arange(size)] * np.hanning(size)
    power = np.abs(np.fft.rfft(frames)) ** 2 / (size / 4) ** 2  # 1 for a tone of full scale
    level = np.clip(1 + np.log10(power + 1e-6) / 6, 0, 1)
    pixels = _COLOURS[(255 * level.T[::-1]).astype(np.uint8)]
    file = io.BytesIO()
    with wave_file.open(file, "wb") as out:
        out.setparams((1, 1, rate, 0, "NONE", ""))
        out.writeframes(np.round(127.5 * (1 + np.clip(wave, -1, 1))).astype(np.uint8).tobytes())
    audio = "data:audio/wav;base64," + base64.b64encode(file.getvalue()).decode()
    return Picture(_SOUND_WIDTH, _SOUND_HEIGHT, uri=_png(Image.fromarray(pixels)), audio=audio)


def _traces(original: np.ndarray, views: np.ndarray, _side: int) -> Strip:
    everything = np.concatenate([original.ravel(), views.ravel()])
    finite = everything[np.isfinite(everything)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    return Strip(trace(original, low, high), tuple(trace(v, low, high) for v in views))


def trace(series: np.ndarray, low: float, high: float) -> Picture:
    """Draw a series (channels × length) as one line per channel, between two common ends."""
    length = series.shape[-1]
    index = np.unique(np.linspace(0, length - 1, min(length, _POINTS)).round().astype(int))
    x = 1 + (_WIDTH - 2) * index / max(length - 1, 1)
    values = np.nan_to_num(series[..., index].astype(float), nan=low, posinf=high, neginf=low)
    y = 2 + (_HEIGHT - 4) * (high - values) / ((high - low) or 1.0)
    lines = tuple(" ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, row, strict=True)) for row in y)
    return Picture(_WIDTH, _HEIGHT, lines=lines)
