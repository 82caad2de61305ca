"""Datasets that return (x, y) by index, torch's among them, read one example at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor
from torch.utils.data import Subset

from augury._base.errors import AuguryError
from augury.data.labels import label_array
from augury.data.readers.items import is_pair, split
from augury.data.readers.stacking import stack
from augury.data.sampling import select
from augury.data.source import Request, Source


def is_map_style(x: Any, y: Any) -> bool:
    """Return whether `x` is to be read by index, not as one array."""
    if isinstance(x, str | bytes | dict | np.ndarray | Tensor) or hasattr(x, "__array__"):
        return False
    if not (hasattr(x, "__len__") and hasattr(x, "__getitem__")):
        return False
    if not isinstance(x, list | tuple):
        return True
    # A list of pictures or tensors, or of pairs where no labels came beside it.
    parts = (Image.Image, Tensor, np.ndarray)
    return len(x) > 0 and (isinstance(x[0], parts) or (y is None and _is_item(x[0])))


def _is_item(item: Any) -> bool:
    return is_pair(item) or isinstance(item, Mapping)


def read_map_style(x: Any, y: Any, request: Request, classes: Sequence[str] | None) -> Source:
    """Read a dataset: the examples that are kept, with their labels.

    Labels that lie ready (``targets`` or ``labels``) are used, so that what is not kept is never
    loaded. Where there are none, everything is read once for the labels and what is kept again;
    where everything is kept, once in all.
    """
    n, most = len(x), request.max_examples
    if n == 0:
        raise AuguryError("the dataset is empty; pass at least one example")
    ready = y if y is not None else _ready_labels(x)
    if ready is None and (most is None or most >= n):
        found: list[Any] = []
        examples = (_example(x[i], i, found, request.label) for i in range(n))
        array, notes = stack(examples, n, size=request.size)
        names = classes or _class_names(x, found)
        chosen = None if names is None else tuple(names)
        return Source(array, label_array(found), chosen, notes=tuple(notes))
    if ready is None:
        found = []
        for i in range(n):
            _example(x[i], i, found, request.label)
        ready = label_array(found)
    names = classes or (_class_names(x, ready) if y is None else None)
    labels, kept, left_out = select(ready, n, names, request)
    index = range(n) if kept is None else kept.tolist()
    examples = (_example(x[i], i, None, request.label) for i in index)
    array, notes = stack(examples, len(index), index.__getitem__, request.size)
    return Source(array, labels, notes=(*notes, *left_out), index=kept, total=n)


def _example(item: Any, i: int, labels: list[Any] | None, label: str | None) -> Any:
    """Return an item's x; its y goes to `labels`, unless labels came from elsewhere."""
    if labels is None and not is_pair(item) and not isinstance(item, Mapping):
        return item
    x, y = split(item, i, label)
    if labels is not None:
        labels.append(y)
    return x


def _ready_labels(dataset: Any) -> np.ndarray | None:
    if isinstance(dataset, Subset):
        inner = _ready_labels(dataset.dataset)
        return None if inner is None else inner[np.asarray(dataset.indices)]
    if getattr(dataset, "target_transform", None) is not None:
        return None  # the ready labels are not what an item gives
    for name in ("targets", "labels"):
        found = getattr(dataset, name, None)
        if isinstance(found, list | tuple | np.ndarray | Tensor) and len(found) == len(dataset):
            return label_array(found)
    return None


def _class_names(dataset: Any, labels: Any) -> list[str] | None:
    """Return the dataset's own names for its class numbers, where they fit."""
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
