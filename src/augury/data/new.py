"""New examples for a model: prepared as the model's own were, with labels or without."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury.data.labels import as_written
from augury.data.layout import arrange, to_array
from augury.data.preparation import Preparation
from augury.data.readers.find_parts import shard_files
from augury.data.readers.paths import read_path
from augury.data.scaling import span
from augury.data.sizes import sides
from augury.data.source import Progress, Request, Source, reading


@dataclass(frozen=True)
class NewExamples:
    """Examples as a model takes them, and labels as people write them, if they have any.

    `files` has the file of each example, where each is one.
    """

    x: np.ndarray
    y: np.ndarray | None
    name: str
    notes: tuple[str, ...]
    files: tuple[str, ...] = ()


def load_new(
    source: str | Path,
    like: Preparation | None,
    *,
    shape: tuple[int, ...],
    real: bool,
    label: str | None = None,
    size: int | tuple[int, int] | None = None,
    kind: str | None = None,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> NewExamples:
    """Read new examples for a model, from the test part if there is one; all shards of a directory.

    Parameters
    ----------
    source, label, size, kind, skip_bad, progress
        As for `augury.load`.
    like
        How the model's own data was prepared; None if it was fitted in Python, where values are
        taken as they are.
    shape
        Of one example, as the model takes it.
    real
        Whether the model predicts numbers.
    """
    request = Request(label, sides(size), skip_bad=skip_bad, progress=progress, like=like, new=True)
    path = Path(os.path.expanduser(source))
    files = shard_files(path) or [source]
    parts = [_load(file, request, shape, real, kind) for file in files]
    if len(parts) == 1:
        return parts[0]
    labels = [part.y for part in parts if part.y is not None]
    return NewExamples(
        np.concatenate([part.x for part in parts]),
        np.concatenate(labels) if len(labels) == len(parts) else None,
        path.name or path.resolve().name,
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        tuple(file for part in parts for file in part.files)
        if all(part.files for part in parts)
        else (),
    )


def _load(
    source: str | Path, request: Request, shape: tuple[int, ...], real: bool, kind: str | None
) -> NewExamples:
    """Read the examples of one file or directory."""
    like = request.like
    with reading(source):
        name, found = read_path(source, request)
        kind = kind or found.kind
        notes = list(found.notes)
        if like is not None:
            x = like.transform(found.x, kind=kind)
        else:
            x, done = arrange(np.asarray(found.x), kind)
            span(x)  # raises if some are not finite
            notes += [
                *done,
                "the model was not fitted by augury fit: values were used as is",
            ]
            if math.prod(shape) == math.prod(x.shape[1:]):
                x = x.reshape(len(x), *shape)
        y = _labels(found, len(x), real, notes)
    return NewExamples(x, y, name, tuple(notes), found.files)


def _labels(source: Source, count: int, real: bool, notes: list[str]) -> np.ndarray | None:
    """Return labels to compare predictions with, if each example has one."""
    if source.y is None:
        return None
    if source.classes is not None:
        names = np.array(source.classes)[np.asarray(source.y, dtype=int)]
        return _as_real(names) if real else names
    several = _several(source.y) if real else None
    y = as_written(source.y if several is None else several.ravel())
    if y is None:
        notes.append("some labels are missing: predictions were not compared with them")
        return None
    found = len(y if several is None else several)
    if found != count:
        raise AuguryError(f"{found:,} labels for {count:,} examples; give one for each, or none")
    if several is not None:
        return several
    if not real:
        return y
    return _as_real(np.asarray(source.y)).reshape(count)


def _as_real(labels: np.ndarray) -> np.ndarray:
    """Return labels to compare a model of numbers with; raise if they are words."""
    try:
        return labels.astype(np.float64)
    except ValueError:
        raise AuguryError(
            "the model predicts numbers, but the labels are words, such as "
            f"{str(labels.flat[0])[:80]!r}; leave them out"
        ) from None


def _several(y: Any) -> np.ndarray | None:
    """Return labels that are a table of numbers, a column for each label; None if they are not."""
    values = to_array(y, "labels")
    if values.ndim != 2 or values.shape[1] < 2 or values.dtype.kind not in "biuf":
        return None
    return values.astype(np.float64)
