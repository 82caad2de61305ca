"""Data for a model that is kept: new examples must be scaled as those it was fitted on were."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury.data import as_dataset
from augury.data.labels import as_written
from augury.data.layout import arrange
from augury.data.load import read_source
from augury.data.readers.source import Source
from augury.data.scaling import scale_pixels, span

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Examples:
    """Examples as a model takes them, and labels as people write them."""

    x: Any
    y: Any
    kind: str
    name: str
    notes: tuple[str, ...]
    real: bool
    about: dict[str, Any]
    """What must be done to new examples in the same way: plain values, kept with the model."""


def read_examples(
    data: str,
    label: str | None,
    size: int | None,
    kind: str | None,
    *,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Examples:
    """Read data to fit a model on; the parameters are those of `augury.load`."""
    name, source = read_source(data, label=label, size=size, skip_bad=skip_bad, progress=progress)
    kind = kind or source.kind
    found = as_dataset(source.x, source.y, kind=kind, classes=source.classes, name=name)
    real = found.classes is None
    notes = (*source.notes, *(note for note in found.notes if "centred" not in note))
    y: Any = None if real else np.array(found.classes)[found.y.numpy()]
    x = arrange(np.asarray(source.x), kind)[0]
    if found.kind == "image":
        if real:
            raise AuguryError(
                "images with a real-valued target cannot be fitted from the command line; use "
                "AugmentedKernelRegressor in Python"
            )
        about = {"kind": "image", "scaled": _scaled(notes), "size": size}
        if about["scaled"]:
            low, high = span(x)
            about["span"] = [min(low, 0.0), high]
        return Examples(found.x, y, found.kind, name, notes, real, about)
    # Vectors and series as they are: `as_dataset` scaled them by their own spread.
    about = _spread(x, found.kind)
    if source.columns:
        about |= {"label": label, "columns": [list(column) for column in source.columns]}
    y = np.asarray(source.y, dtype=np.float64) if real else y
    return Examples(_standardised(x, about), y, found.kind, name, notes, real, about)


def read_new(
    data: str,
    label: str | None,
    size: int | None,
    kind: str | None,
    *,
    like: dict[str, Any],
    shape: tuple[int, ...],
    real: bool,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Examples:
    """Read new examples for a model, with labels or without.

    Parameters
    ----------
    data, label, size, kind, skip_bad, progress
        As for `augury.load`.
    like
        `about` of the data that the model was fitted on; empty if it was saved from Python.
    shape
        Of one example, as the model takes it.
    real
        Whether the model predicts numbers.
    """
    name, source = read_source(
        data, label=label, size=size, skip_bad=skip_bad, progress=progress, like=like
    )
    x = np.asarray(source.x)
    kept = like.get("kind")
    if x.ndim == 2 and kept == "image":
        kept = None
    x, notes = arrange(x, kind or source.kind or kept)
    low, high = span(x)
    y = _labels(source, len(x), real, notes)
    if "mean" not in like and "scaled" not in like:
        notes.append("the model was not fitted by augury fit: values were taken as they are")
        if math.prod(shape) == math.prod(x.shape[1:]):
            x = x.reshape(len(x), *shape)
    elif x.ndim == 4:
        x, done = _same_pixels(x, low, high, like)
        notes += done
    else:
        x = _standardised(x, like)
    found = {4: "image", 3: "series", 2: "vector"}[x.ndim]
    return Examples(x, y, found, name, (*source.notes, *notes), real, like)


def _labels(source: Source, count: int, real: bool, notes: list[str]) -> np.ndarray | None:
    """Give labels to compare predictions with, if each example has one."""
    if source.y is None:
        return None
    if source.classes is not None:
        return np.array(source.classes)[np.asarray(source.y, dtype=int)]
    y = as_written(source.y)
    if y is None:
        notes.append("some labels are missing: predictions were not compared with them")
        return None
    if len(y) != count:
        raise AuguryError(
            f"{len(y):,} labels came for {count:,} examples; give one for each, or none"
        )
    if not real:
        return y
    try:
        return np.asarray(source.y, dtype=np.float64).reshape(count)
    except ValueError:
        raise AuguryError(
            f"the model predicts numbers, and the labels are words, as {y[0]!r}; leave them out"
        ) from None


def _scaled(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if "were scaled" in note]


def _same_pixels(
    x: np.ndarray, low: float, high: float, like: dict[str, Any]
) -> tuple[np.ndarray, list[str]]:
    """Scale pixels as the model's were; refuse those that were saved in another way."""
    as_is = low >= 0 and high <= 1
    if "span" in like:
        base, top = like["span"]
        span = top - base
        near = high - base <= 2 * span and base - low <= span and high - low >= span / 10
        if not as_is and near:
            return ((x - base) / span).astype(np.float32), []
    out, done = scale_pixels(x, low, high)
    scaled = _scaled(tuple(done))
    wanted = like.get("scaled") or []
    if "span" in like or wanted != scaled:
        raise AuguryError(
            f"the scale of the pixels differs from the model's: these go from {low:g} to {high:g}, "
            f"and for the model {' '.join(wanted) or 'bytes or values in [0, 1] were taken'}; "
            "save both in the same way"
        )
    return out, done


def _spread(x: np.ndarray, kind: str) -> dict[str, Any]:
    """Give the mean and the standard deviation of each column, or channel of series."""
    axes = (0, *range(2, x.ndim))
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = x.mean(axes, dtype=np.float64), x.std(axes, dtype=np.float64)
    if not np.isfinite(deviation).all():
        column = int(np.flatnonzero(~np.isfinite(deviation))[0])
        raise AuguryError(
            f"column {column + 1} holds numbers too large to square, up to "
            f"{np.abs(x[:, column]).max():.0e}; bring them nearer to 1"
        )
    deviation[deviation <= 1e-9 * np.abs(mean)] = 1  # constant, but for rounding
    return {"kind": kind, "mean": mean.tolist(), "deviation": deviation.tolist()}


def _standardised(x: np.ndarray, about: dict[str, Any]) -> np.ndarray:
    if about.get("kind") == "image":
        raise AuguryError(f"the model takes images, and this data has shape {x.shape[1:]}")
    mean, deviation = (np.array(about[key]) for key in ("mean", "deviation"))
    if mean.shape != x.shape[1:2]:
        raise AuguryError(
            f"the model takes {len(mean)} columns (or channels), and this data has {x.shape[1]}; "
            "give the columns that it was fitted on, and --label for a table that has one"
        )
    sides = (-1,) + (1,) * (x.ndim - 2)
    return ((x - mean.reshape(sides)) / deviation.reshape(sides)).astype(np.float32)
