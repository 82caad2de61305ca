"""Arrays as users have them, turned to one layout: examples first, then channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.text import cause

KINDS = ("image", "sound", "series", "vector")
_CHANNELS = (1, 2, 3, 4)
_LEAST_SIDE = 6


def to_array(x: Any, what: str = "examples") -> np.ndarray:
    """Return anything array-like as a NumPy array, without a copy where possible."""
    if isinstance(x, Tensor):
        if x.is_meta:
            raise AuguryError(f"{what} must have values, but this tensor is on the meta device")
        x = x.detach().cpu()
        if x.layout != torch.strided:
            x = x.to_dense()
        if x.is_floating_point() and x.element_size() < 4:  # NumPy lacks most of these types
            x = x.float()
        return x.numpy()
    if np.ma.is_masked(x):
        raise AuguryError(f"{what} must not be masked, but some are; fill or drop them")
    try:
        return np.asarray(x)
    except (ValueError, TypeError, OverflowError) as error:
        raise AuguryError(
            f"{what} must all have the same shape; NumPy reports: {cause(error)}"
        ) from None


def arrange(x: np.ndarray, kind: str | None) -> tuple[np.ndarray, list[str]]:
    """View an array as images (N, C, H, W), series (N, C, L) or vectors (N, d); say what was done.

    Four sides are images, channels first or last; three are images if they are bytes or square,
    else series; two are vectors. `kind` overrides the guess.
    """
    if x.dtype.kind not in "biuf":
        raise AuguryError(
            f"examples must be numbers, not {x.dtype}; turn words into numbers first, or read a "
            "table with augury.load"
        )
    if kind not in (None, *KINDS):
        raise AuguryError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    if not 2 <= x.ndim <= 4:
        raise AuguryError(
            f"x must have 2 to 4 dimensions, examples first, not {x.ndim} (shape {x.shape}); "
            "reshape it: images N × height × width, series N × channels × length, vectors N × d"
        )
    if x.size == 0:
        raise AuguryError(f"an array of shape {x.shape} contains no examples")
    if kind == "vector":
        if x.ndim == 2:
            return x, []
        return x.reshape(len(x), -1), [f"examples of shape {_sides(x)} were taken as vectors"]
    if kind == "sound":
        return _sound(x)
    if x.ndim == 4:
        if kind == "series":
            raise AuguryError(
                f"series have 3 dimensions (N × channels × length), not 4 (shape {x.shape})"
            )
        return _images(x)
    if x.ndim == 3:
        return _three(x, kind)
    if kind == "image":
        raise AuguryError(
            f"images have 3 or 4 dimensions, not 2 (shape {x.shape}); reshape to N × height × width"
        )
    return (x[:, None, :], []) if kind == "series" else (x, [])


def _three(x: np.ndarray, kind: str | None) -> tuple[np.ndarray, list[str]]:
    bytes_ = x.dtype == np.uint8
    is_image = kind == "image" or (kind is None and are_images(x.shape[1:], bytes_=bytes_))
    if kind is not None or x.dtype == np.uint8:
        return (x[:, None], []) if is_image else (x, [])
    if is_image:
        return x[:, None], [f"examples of {_sides(x)} were taken as grey images"]
    return x, [f"examples of {_sides(x)} were taken as series, channels × length"]


def are_images(sides: tuple[int, ...], *, bytes_: bool) -> bool:
    """Return whether examples of two sides are images: of bytes, or square; else series."""
    return bytes_ or sides[0] == sides[1] >= _LEAST_SIDE


def has_channels_last(sides: tuple[int, ...]) -> bool:
    """Return whether examples of three sides are surely images with their channels last."""
    return sides[2] in _CHANNELS and sides[0] not in _CHANNELS


def _sound(x: np.ndarray) -> tuple[np.ndarray, list[str]]:
    if x.ndim == 4:
        raise AuguryError(
            f"sound has 2 or 3 dimensions (N × channels × samples), not 4 (shape {x.shape})"
        )
    if x.ndim == 2:
        return x[:, None, :], []
    if x.shape[1] == 1:
        return x, []
    return x.mean(axis=1, keepdims=True), [f"{x.shape[1]} channels were averaged to one"]


def _images(x: np.ndarray) -> tuple[np.ndarray, list[str]]:
    if has_channels_last(x.shape[1:]):
        x = x.transpose(0, 3, 1, 2)
    elif x.shape[1] not in _CHANNELS:
        return _many_channels(x)
    if x.shape[1] == 4:
        return x[:, :3], ["the fourth channel (alpha) was dropped"]
    return x, []


def _many_channels(x: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """View images of more than four channels with the channels first.

    Two equal sides are an image's height and width; where all differ, or none does, the channels
    are first. A note says so, and how to pass the other order, unless the last two are equal.
    """
    a, b, c = x.shape[1:]
    if b == c != a:
        return x, []
    if a == b != c:
        found, axis, call = x.transpose(0, 3, 1, 2), "first", "swapaxes(2, 3)"
    else:
        found, axis, call = x, "last", f"transpose{(0, 3, 2, 1) if a == c != b else (0, 3, 1, 2)}"
    channels, height, width = found.shape[1:]
    return found, [
        f"images of shape {_sides(x)} were taken as {channels} channels of {height} × {width} "
        f"pixels; if the {axis} axis holds the channels, pass x.{call}"
    ]


def _sides(x: np.ndarray) -> str:
    return " × ".join(str(side) for side in x.shape[1:])


def to_tensor(x: np.ndarray) -> Tensor:
    """View an array as a tensor; copy it only if torch could not share it."""
    if not x.flags.writeable or any(stride < 0 for stride in x.strides):
        x = x.copy()
    return torch.from_numpy(x)
