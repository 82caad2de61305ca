"""An ``.npy`` file of examples with its labels next to it, memory-mapped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat
from augury.data.limits import check_bytes
from augury.data.readers.tree import TEST, TRAIN
from augury.data.sampling import select
from augury.data.source import Request, Source

_PAIRS = (("x", "y"), ("images", "labels"), ("data", "labels"), ("data", "targets"))
_EXAMPLES = tuple(examples for examples, _ in _PAIRS)


def read_npy(path: Path, request: Request) -> Source:
    """Read the selected examples of a file, and their labels from the file next to it."""
    x = mapped(path)
    labels = labels_beside(path)
    if labels is None and not request.new:
        raise AuguryError(
            f"there are no labels next to {flat(path)}: expected a matching name, such as "
            "x.npy and y.npy, or images.npy and labels.npy"
        )
    return read_mapped(x, None if labels is None else np.array(mapped(labels)), request, path)


def read_mapped(
    x: np.ndarray,
    y: Any,
    request: Request,
    what: object = "the array",
    classes: tuple[str, ...] | None = None,
) -> Source:
    """Read from a mapped array the examples that are kept, and no others.

    The span of pixels is then that of the examples kept.
    """
    if y is None or request.new:
        check_bytes(x.nbytes, what, "save fewer examples")
        return Source(np.asarray(x), y, classes)
    labels, kept, notes = select(y, len(x), classes, request)
    size = len(labels.y) * x[:1].nbytes
    check_bytes(size, what, "keep fewer with max_examples (--max-examples)")
    chosen = np.array(x) if kept is None else x[kept]
    return Source(chosen, labels, notes=tuple(notes), index=kept, total=len(x))


def find_examples(folder: Path, *, new: bool = False) -> Path | None:
    """Return the file of examples in a directory that holds such a pair, the training one first.

    For `new` examples, the test one comes first, which may be without labels.
    """
    files = sorted(folder.glob("*.npy"))
    found = [path for path in files if labels_beside(path) is not None]
    if not new:
        return min(found, key=lambda path: (not has_part(path, TRAIN), path.name), default=None)
    if not found:
        return None
    found += [path for path in files if has_part(path, TEST) and has_part(path, _EXAMPLES)]
    order = (*TEST, None, *TRAIN)
    return min(found, key=lambda path: (_place(path, order), path.name))


def has_part(path: Path, words: Iterable[str]) -> bool:
    """Return whether a file's name has one of some words, as x_train has train."""
    return not _words(path).isdisjoint(words)


def _place(path: Path, order: Sequence[str | None]) -> int:
    """Return where a file is in an order of parts; None is a file of no part."""
    words = _words(path)
    return next((k for k, part in enumerate(order) if part in words), order.index(None))


def _words(path: Path) -> set[str]:
    return set(path.stem.lower().replace("-", "_").split("_"))


def mapped(path: Path) -> np.ndarray:
    """Map the array of a file into memory, read-only."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # a damaged header can make NumPy raise anything
        raise AuguryError(
            f"{flat(path)} is not an .npy file of numbers, or is damaged; save it with numpy.save"
        ) from error
    if not isinstance(found, np.ndarray) or found.ndim == 0:
        raise AuguryError(
            f"{flat(path)} does not hold an array of examples; save one with numpy.save"
        )
    return found


def labels_beside(path: Path) -> Path | None:
    """Return the file of labels that belongs to a file of examples, by its name."""
    stem = path.stem
    for examples, labels in _PAIRS:
        for old, new in ((examples, labels), (examples.upper(), labels.upper())):
            if old in stem.replace("-", "_").split("_"):
                parts = [new if part == old else part for part in stem.replace("-", "_").split("_")]
                for joint in ("_", "-"):
                    found = path.with_name(joint.join(parts) + path.suffix)
                    if found.is_file():
                        return found
    return None
