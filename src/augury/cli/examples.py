"""Data for a model that is kept: new examples must be scaled as those it was fitted on were."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from augury.data import load
from augury.data.layout import arrange, to_tensor
from augury.data.npz import read_npz
from augury.data.scaling import scale_pixels, span
from augury.data.table import TABLES, read_table
from augury.errors import AuguryError


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
    like: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Examples:
    """Read data for a model.

    Parameters
    ----------
    data, label, size, kind, progress
        As for `augury.load`.
    like
        `about` of the data that the model was fitted on, for new examples; these may be without
        labels, in an ``.npz`` file that holds one array.
    """
    path = Path(data).expanduser()
    if like is not None and path.suffix.lower() == ".npz" and _arrays(path) == 1:
        return _unlabelled(path, kind, like)
    found = load(data, label=label, size=size, kind=kind, progress=progress)
    real = found.classes is None
    notes = tuple(note for note in found.notes if "centred" not in note)
    y: Any = None if real else np.array(found.classes)[found.y.numpy()]
    if found.kind == "image":
        if real:
            raise AuguryError(
                "images with a real-valued target cannot be fitted from the command line; use "
                "AugmentedKernelRegressor in Python"
            )
        about = _same_pixels(notes, size, like)
        return Examples(found.x, y, found.kind, found.name, notes, real, about)
    # Vectors and series are read once more, as they are: `load` scaled them by their own spread.
    source = read_table(path, label) if path.suffix.lower() in TABLES else read_npz(path)
    x = arrange(np.asarray(source.x), kind)[0]
    about = _spread(x, found.kind) if like is None else like
    y = np.asarray(source.y, dtype=np.float64) if real else y
    return Examples(_standardised(x, about), y, found.kind, found.name, notes, real, about)


def _unlabelled(path: Path, kind: str | None, like: dict[str, Any]) -> Examples:
    try:
        with np.load(path, allow_pickle=False) as archive:
            array, notes = arrange(archive[archive.files[0]], kind)
    except (OSError, ValueError, EOFError) as error:
        if isinstance(error, AuguryError):
            raise
        raise AuguryError(f"cannot read {path}: {' '.join(str(error).split())[:100]}") from None
    low, high = span(array)
    if array.ndim == 4:
        array, done = scale_pixels(array, low, high)
        _same_pixels(tuple(done), None, like)
        return Examples(to_tensor(array), None, "image", path.name, tuple(notes), False, like)
    name = {3: "series", 2: "vector"}[array.ndim]
    return Examples(_standardised(array, like), None, name, path.name, tuple(notes), False, like)


def _same_pixels(
    notes: tuple[str, ...], size: int | None, like: dict[str, Any] | None
) -> dict[str, Any]:
    scaled = [note for note in notes if "were scaled" in note]
    if like is not None and like.get("scaled") != scaled:
        wanted, came = (" ".join(s or ["as they are"]) for s in (like.get("scaled"), scaled))
        raise AuguryError(
            f"the scale of the pixels differs from the model's: {came}, and for the model: "
            f"{wanted}; save both as bytes, or with values in [0, 1]"
        )
    return {"kind": "image", "scaled": scaled, "size": size}


def _spread(x: np.ndarray, kind: str) -> dict[str, Any]:
    """Give the mean and the standard deviation of each column, or channel of series."""
    axes = (0, *range(2, x.ndim))
    mean, deviation = x.mean(axes, dtype=np.float64), x.std(axes, dtype=np.float64)
    deviation[deviation <= 1e-9 * np.abs(mean)] = 1  # constant, but for rounding
    return {"kind": kind, "mean": mean.tolist(), "deviation": deviation.tolist()}


def _standardised(x: np.ndarray, about: dict[str, Any]) -> np.ndarray:
    if about.get("kind") == "image":
        raise AuguryError(f"the model takes images, and this data has shape {x.shape[1:]}")
    mean, deviation = (np.array(about[key]) for key in ("mean", "deviation"))
    if mean.shape != x.shape[1:2]:
        raise AuguryError(
            f"the model takes {len(mean)} columns (or channels), and this data has {x.shape[1]}; "
            "give the columns that it was fitted on"
        )
    sides = (-1,) + (1,) * (x.ndim - 2)
    return ((x - mean.reshape(sides)) / deviation.reshape(sides)).astype(np.float32)


def _arrays(path: Path) -> int:
    """Count the arrays of an archive; 0 if it is none, for its reader to say."""
    try:
        with zipfile.ZipFile(path) as archive:
            return len(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return 0
