"""Iterables of (x, y), which have no index and perhaps no end: read once, up to a limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
from torch import Tensor

from augury._base.errors import AuguryError
from augury.data.labels import label_array
from augury.data.readers.items import split
from augury.data.readers.stacking import stack
from augury.data.sampling import sample_note
from augury.data.source import Request, Source

MOST_ITEMS = 50_000
"""Examples that are read of an iterable, which may have no end."""

_LOOKED_AT = 16  # items that are held before it is decided whether they are batches
_MOST_CHANNELS = 4  # of images; a batch is larger


def read_iterable(
    x: Iterable[Any], request: Request, classes: Sequence[str] | None = None
) -> Source:
    """Read an iterable of pairs or mappings, or of batches of them.

    Where fewer are to be kept, they are drawn evenly from all that were read, which are never in
    memory at once (reservoir sampling, by the seed).
    """
    most = request.max_examples
    rng = np.random.default_rng(request.seed & 0x7FFF_FFFF_FFFF_FFFF)
    kept: list[tuple[int, Any, Any]] = []
    seen, more = 0, False
    said: list[str] = []
    for example, label in _examples(x, request.label, said):
        if seen >= MOST_ITEMS:
            more = True
            break
        if most is None or len(kept) < most:
            kept.append((seen, example, label))
        else:
            place = int(rng.integers(seen + 1))
            if place < most:
                kept[place] = (seen, example, label)
        seen += 1
    if not kept:
        raise AuguryError("the iterable is empty; pass at least one example")
    kept.sort(key=lambda item: item[0])
    index = np.array([item[0] for item in kept])
    array, notes = stack(
        (item[1] for item in kept), len(kept), lambda row: int(index[row]), request.size
    )
    notes += said
    if more:
        notes.append(f"only the first {MOST_ITEMS:,} examples of the iterable were read")
    if len(kept) < seen:
        notes.append(sample_note(len(kept), seen, request.seed, by_class=False))
    names = None if classes is None else tuple(classes)
    y = label_array([item[2] for item in kept])
    return Source(array, y, names, notes=tuple(notes), index=index, total=seen)


def _examples(
    items: Iterable[Any], label: str | None, notes: list[str]
) -> Iterator[tuple[Any, Any]]:
    """Yield examples one at a time, from batches too; note which it was where both could be."""
    pairs = (split(item, number, label) for number, item in enumerate(items))
    first: list[tuple[Any, Any]] = []
    batches: bool | None = None
    for pair in islice(pairs, _LOOKED_AT):
        first.append(pair)
        batches = _is_surely_batch(*pair, len(first[0][1])) if _may_be_batch(*pair) else False
        if batches is not None:
            break
    if batches is None and first:
        x, y = first[0]
        batches = len(y) > _MOST_CHANNELS
        notes.append(_said(tuple(x.shape), batches))
    for x, y in chain(first, pairs):
        if batches and _may_be_batch(x, y):
            yield from zip(x, np.asarray(y).tolist(), strict=True)
        else:
            yield x, y


def _may_be_batch(x: Any, y: Any) -> bool:
    arrays = isinstance(y, Tensor | np.ndarray) and isinstance(x, Tensor | np.ndarray)
    return arrays and y.ndim == 1 and x.ndim >= 2 and len(x) == len(y)


def _is_surely_batch(x: Any, y: Any, size: int) -> bool | None:
    """Return True for a batch, None for what may be channels with as many labels of 0 and 1.

    No example has four sides, and no class is a number other than 0 and 1 where there are several
    labels. Of examples, all have as many labels as the first, which are `size`.
    """
    if x.ndim > 3 or len(y) != size or size == 1:
        return True
    labels = np.asarray(y)
    if set(np.unique(labels).tolist()) <= {0, 1}:
        return None
    return True if labels.dtype.kind != "f" or size > _MOST_CHANNELS else None


def _said(shape: tuple[int, ...], batches: bool) -> str:
    """Say how items were read that may be either."""
    sides = " × ".join(str(side) for side in shape)
    begin = f"items of shape {sides} with {shape[0]} labels were read as"
    if batches:
        return (
            f"{begin} batches of {shape[0]}, not as single examples; if they are, give the labels "
            "of each as a list"
        )
    return f"{begin} single examples, not as batches of {shape[0]}"
