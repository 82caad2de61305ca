"""CIFAR-10 and CIFAR-100 as published for Python: pickled batches, read without running code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import count, flat
from augury.data.readers.plain_pickle import read_pickle
from augury.data.source import Source

_SHAPE = (3, 32, 32)


def is_cifar(folder: Path) -> bool:
    """Return whether a directory holds CIFAR's Python batches."""
    names = {p.name for p in folder.iterdir() if p.is_file()}
    return "data_batch_1" in names or {"train", "meta"} <= names


def has_test_part(folder: Path) -> bool:
    """Return whether CIFAR's test images lie in a directory, beside the training ones."""
    return _test_batch(folder).is_file()


def read_cifar(folder: Path, *, test: bool = False) -> Source:
    """Read the training images, or those of the test batch alone."""
    batches = sorted(folder.glob("data_batch_[0-9]*"), key=lambda p: (len(p.name), p.name))
    notes: tuple[str, ...] = ()
    if batches:
        label, meta, key = "labels", folder / "batches.meta", "label_names"
        if len(batches) != 5 and not test:
            notes = (f"{len(batches)} of CIFAR-10's 5 training batches were there",)
    else:
        batches = [folder / "train"]
        label, meta, key = "fine_labels", folder / "meta", "fine_label_names"
    if test:
        batches = [_test_batch(folder)]
    x, y = zip(*(read_batch(path, label) for path in batches), strict=True)
    classes = _names(read_pickle(meta).get(key)) if meta.is_file() else None
    return Source(np.concatenate(x), np.concatenate(y), classes, "image", notes=notes)


def read_batch(path: Path, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Read one file of images ``(N, 3072)``, and their labels of this name."""
    found = read_pickle(path)
    pixels, labels = found.get("data"), found.get(label)
    if not isinstance(pixels, np.ndarray) or labels is None:
        raise AuguryError(
            f"{flat(path)} is not a CIFAR batch: expected data and {label}, got "
            f"{', '.join(flat(key) for key in found) or 'nothing'}"
        )
    wide = int(np.prod(_SHAPE))
    if pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[1] != wide:
        raise AuguryError(
            f"{flat(path)} is not a CIFAR batch: expected rows of {wide} bytes, got "
            f"{pixels.dtype} of shape {pixels.shape}"
        )
    if len(labels) != len(pixels):
        raise AuguryError(
            f"{flat(path)} has {count(len(labels), 'label')} for {count(len(pixels), 'image')}"
        )
    return pixels.reshape(-1, *_SHAPE), np.asarray(labels)


def _test_batch(folder: Path) -> Path:
    """Return where CIFAR's test images are, for CIFAR-10 or CIFAR-100."""
    return folder / ("test_batch" if (folder / "data_batch_1").is_file() else "test")


def _names(found: Any) -> tuple[str, ...] | None:
    if not isinstance(found, list):
        return None
    return tuple(n.decode("utf-8", "replace") if isinstance(n, bytes) else str(n) for n in found)
