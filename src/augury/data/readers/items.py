"""One item of a dataset as an example and its label: pairs, and mappings as Hugging Face has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.text import did_you_mean, flat, listed

X_KEYS = (
    *("image", "img", "images", "pixel_values", "x", "input", "inputs", "features", "data"),
    *("jpg", "jpeg", "png", "webp", "ppm", "pil", "npy", "pth", "audio"),
)
Y_KEYS = ("label", "labels", "fine_label", "target", "targets", "class", "cls", "y")


def is_pair(item: Any) -> bool:
    """Return whether an item is (x, y): a tuple, or a list that is not two numbers."""
    if isinstance(item, list):
        return len(item) == 2 and not isinstance(item[0], int | float)
    return isinstance(item, tuple) and len(item) >= 2


def choose_keys(keys: Sequence[str], label: str | None) -> tuple[str, str]:
    """Return the entries of a mapping that hold the example and the label."""
    if label is not None and label not in keys:
        raise AuguryError(
            f"the dataset has no entry {label!r}{did_you_mean(label, keys) or ';'} its entries are "
            f"{listed(keys, 12)}"
        )
    lower = {key.lower(): key for key in keys}
    y = label or next((lower[key] for key in Y_KEYS if key in lower), None)
    x = next((lower[key] for key in X_KEYS if key in lower and lower[key] != y), None)
    if x is None and y is not None:
        rest = [key for key in keys if key != y and not key.startswith("__")]
        x = rest[0] if len(rest) == 1 else None
    if x is None or y is None:
        missing = "the label? give label=" if y is None else "the example? name it image or x"
        raise AuguryError(f"which entry of the dataset is {missing}; it has {listed(keys, 12)}")
    return x, y


def split(item: Any, number: int, label: str | None = None) -> tuple[Any, Any]:
    """Return an item's example and its label."""
    if isinstance(item, Mapping):
        x, y = choose_keys([str(key) for key in item], label)
        return plain(item[x]), plain_label(item[y])
    if is_pair(item):
        return plain(item[0]), plain_label(item[1])
    raise AuguryError(
        f"item {number} of the dataset is of type {type(item).__name__}; expected a pair (x, y) "
        "or a mapping with an image and a label"
    )


def plain(x: Any) -> Any:
    """Return an example as an array, a tensor or a Pillow image; encoded images are decoded."""
    if isinstance(x, Image.Image | Tensor | np.ndarray):
        return x
    if isinstance(x, bytes | bytearray):
        return _decoded(bytes(x))
    if hasattr(x, "numpy"):  # TensorFlow's tensors and their like
        return x.numpy()
    return x


def plain_label(y: Any) -> Any:
    """Return a label as a number or a word; bytes of digits are a number, as in WebDataset."""
    if hasattr(y, "numpy") and not isinstance(y, Tensor):
        y = y.numpy()
    if isinstance(y, Tensor | np.ndarray) and y.ndim == 0:
        y = y.item()
    if isinstance(y, bytes | bytearray):
        text = bytes(y).decode("utf-8", "replace").strip()
        return int(text) if text.isdecimal() and len(text) < 19 else text
    return y


def _decoded(data: bytes) -> Image.Image:
    from augury.data.readers.images import Unreadable, decode_bytes

    try:
        return decode_bytes(data)
    except Unreadable as error:
        raise AuguryError(
            f"an example of {len(data):,} bytes is not an image that can be read: {flat(error)}"
        ) from None
