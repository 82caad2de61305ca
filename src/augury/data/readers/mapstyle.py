"""Datasets that give (x, y) by index, torch's among them, read one example at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor
from torch.utils.data import Subset

from augury._base.errors import AuguryError
from augury.data.labels import encode
from augury.data.layout import to_array
from augury.data.readers.pictures import is_grey, to_pixels
from augury.data.sampling import choose, sample_note
from augury.data.source import Request, Source


def is_map_style(x: Any, y: Any) -> bool:
    """Whether `x` is to be read by index, rather than seen as an array at once."""
    if isinstance(x, str | bytes | dict | np.ndarray | Tensor) or hasattr(x, "__array__"):
        return False
    if not (hasattr(x, "__len__") and hasattr(x, "__getitem__")):
        return False
    if not isinstance(x, list | tuple):
        return True
    # A list of pictures or tensors, or of pairs where no labels came beside it.
    parts = (Image.Image, Tensor, np.ndarray)
    return len(x) > 0 and (isinstance(x[0], parts) or (y is None and _is_pair(x[0])))


def read_map_style(x: Any, y: Any, request: Request, classes: Sequence[str] | None) -> Source:
    """Read a dataset: the examples that are kept, with their labels.

    Labels that lie ready (``targets`` or ``labels``) are used, so that what is not kept is never
    loaded. Where there are none, everything is read once for the labels and what is kept again;
    where everything is kept, once in all.
    """
    n, most = len(x), request.max_examples
    if n == 0:
        raise AuguryError("there are no examples in an empty dataset; give some")
    ready = y if y is not None else _ready_labels(x)
    if ready is None and (most is None or most >= n):
        found: list[Any] = []
        array = stack((_example(x[i], i, found) for i in range(n)), n)
        names = classes or _class_names(x, found)
        return Source(array, _column(found), None if names is None else tuple(names))
    if ready is None:
        found = []
        for i in range(n):
            _example(x[i], i, found)
        ready = _column(found)
    names = classes or (_class_names(x, ready) if y is None else None)
    labels = encode(ready, n, names, request.task)
    kept = choose(labels.y, labels.count, most, request.seed)
    index = range(n) if kept is None else kept.tolist()
    array = stack((_example(x[i], i, None) for i in index), len(index), index.__getitem__)
    notes: tuple[str, ...] = ()
    if kept is not None:
        by_class = labels.classes is not None
        notes = (sample_note(len(kept), n, request.seed, by_class=by_class),)
    task = "regression" if labels.classes is None else "classification"
    target = labels.y if kept is None else labels.y[kept]
    return Source(array, target, labels.classes, task=task, notes=notes, index=kept)


def stack(
    examples: Iterable[Any], n: int, number: Callable[[int], int] = lambda row: row
) -> np.ndarray:
    """Put `n` examples into one array, allocated once; `number` names a row in messages."""
    out: np.ndarray | None = None
    for row, example in enumerate(examples):
        if isinstance(example, Image.Image):
            # Grey pictures become RGB as soon as one is in colour.
            grey = is_grey(example) and (out is None or out.shape[1] == 1)
            if out is not None and out.ndim == 4 and out.shape[1] == 1 and not grey:
                out = np.repeat(out, 3, axis=1)
            value = to_pixels(example, grey)
        else:
            value = to_array(example)
        if value.dtype.kind not in "biuf":
            raise AuguryError(
                f"example {number(row)} is of type {type(example).__name__}, not numbers; "
                "give arrays, tensors or Pillow images"
            )
        if out is None:
            out = np.empty((n, *value.shape), dtype=value.dtype)
        elif value.shape != out.shape[1:]:
            raise AuguryError(
                f"example {number(row)} has shape {value.shape} and the first {out.shape[1:]}; "
                "give examples of one shape"
            )
        if value.dtype != out.dtype:
            out = out.astype(np.result_type(out, value), copy=False)
        out[row] = value
    assert out is not None  # n > 0
    return out


def _is_pair(item: Any) -> bool:
    if isinstance(item, list):  # two numbers in a list are a vector
        return len(item) == 2 and not isinstance(item[0], int | float)
    return isinstance(item, tuple) and len(item) >= 2


def _example(item: Any, i: int, labels: list[Any] | None) -> Any:
    """Give an item's x; its y goes to `labels`, unless labels came from elsewhere."""
    if _is_pair(item):
        if labels is not None:
            labels.append(item[1])
        return item[0]
    if labels is None:
        return item
    raise AuguryError(
        f"item {i} of the dataset is of type {type(item).__name__}; expected a pair (x, y)"
    )


def _column(found: list[Any]) -> np.ndarray:
    return np.asarray([y.item() if isinstance(y, Tensor | np.ndarray) else y for y in found])


def _ready_labels(dataset: Any) -> np.ndarray | None:
    if isinstance(dataset, Subset):
        inner = _ready_labels(dataset.dataset)
        return None if inner is None else inner[np.asarray(dataset.indices)]
    if getattr(dataset, "target_transform", None) is not None:
        return None  # the ready labels are not what an item gives
    for name in ("targets", "labels"):
        found = getattr(dataset, name, None)
        if isinstance(found, list | tuple | np.ndarray | Tensor) and len(found) == len(dataset):
            return to_array(found)
    return None


def _class_names(dataset: Any, labels: Any) -> list[str] | None:
    """Give the dataset's own names for its class numbers, where they fit."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    names = getattr(dataset, "classes", None)
    numbers = np.asarray(labels)
    fits = (
        isinstance(names, list | tuple)
        and all(isinstance(name, str) for name in names)
        and getattr(dataset, "target_transform", None) is None
        and numbers.dtype.kind in "iu"
        and numbers.min() >= 0
        and numbers.max() < len(names)
    )
    return list(names) if fits and names is not None else None
