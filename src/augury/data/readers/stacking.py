"""Examples that come one at a time, put into one array."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from PIL import Image

from augury._base.errors import AuguryError
from augury._base.text import kind_of
from augury.data.layout import to_array
from augury.data.limits import check_bytes
from augury.data.readers.pictures import is_grey, to_pixels
from augury.data.sizes import LARGEST_SIDE, default_side


def stack(
    examples: Iterable[Any],
    n: int,
    number: Callable[[int], int] = lambda row: row,
    size: tuple[int, int] | None = None,
) -> tuple[np.ndarray, list[str]]:
    """Put `n` examples into one array, allocated once, and say what was done to them.

    Parameters
    ----------
    examples
        Arrays, tensors or Pillow images.
    n
        How many there are.
    number
        From a row to the example's number in the user's data, for messages.
    size
        Height and width for Pillow images; by default as they are or, where they are of several
        sizes, as `augury.data.sizes.default_side` says.
    """
    out: np.ndarray | None = None
    mixed: _Mixed | None = None
    for row, example in enumerate(examples):
        picture = isinstance(example, Image.Image)
        if picture:
            if mixed is None and out is not None and size is None:
                height, width = out.shape[-2:]
                if out.ndim == 4 and example.size != (width, height):
                    mixed = _Mixed(out[:row])
            if mixed is not None:
                mixed.add(example)
                continue
            # Grey pictures become RGB as soon as one is in colour.
            grey = is_grey(example) and (out is None or out.shape[1] == 1)
            if out is not None and out.ndim == 4 and out.shape[1] == 1 and not grey:
                out = np.repeat(out, 3, axis=1)
            value = to_pixels(example, grey, size)
        else:
            value = to_array(example)
        if value.dtype.kind not in "biuf":
            raise AuguryError(
                f"example {number(row)} is {kind_of(example)}, which holds no numbers; "
                "give arrays, tensors or Pillow images"
            )
        if out is None:
            check_bytes(n * value.nbytes, "the dataset", "keep fewer with max_examples")
            out = np.empty((n, *value.shape), dtype=value.dtype)
        elif mixed is not None or value.shape != out.shape[1:]:
            raise AuguryError(
                f"example {number(row)} has shape {value.shape} and the first {out.shape[1:]}; "
                "give examples of one shape"
            )
        if value.dtype != out.dtype:
            out = out.astype(np.result_type(out, value), copy=False)
        out[row] = value
    if mixed is not None:
        return mixed.array()
    assert out is not None  # n > 0
    return out, []


class _Mixed:
    """Pictures of several sizes, kept small until all have been seen and a size can be chosen."""

    def __init__(self, before: np.ndarray) -> None:
        self.sizes: list[tuple[int, int]] = []
        self.pictures: list[Image.Image] = []
        for pixels in before:
            self.add(Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)))

    def add(self, picture: Image.Image) -> None:
        width, height = picture.size
        self.sizes.append((height, width))
        pixels = to_pixels(picture, is_grey(picture))
        small = Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))
        scale = 2 * LARGEST_SIDE / min(width, height)
        if scale < 1:  # twice the side that it can get at most
            small = small.resize((max(1, round(width * scale)), max(1, round(height * scale))))
        self.pictures.append(small)

    def array(self) -> tuple[np.ndarray, list[str]]:
        side = default_side(self.sizes)
        grey = all(is_grey(picture) for picture in self.pictures)
        out = np.stack([to_pixels(picture, grey, (side, side)) for picture in self.pictures])
        return out, [
            f"images of {len(set(self.sizes)):,} sizes were resized to {side} × {side} pixels; "
            "choose another side with size="
        ]
