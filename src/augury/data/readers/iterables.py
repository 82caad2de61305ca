"""Iterables of (x, y), which have no index and perhaps no end: read once, up to a limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from augury._base.errors import AuguryError
from augury.data.readers.items import split
from augury.data.readers.stacking import stack
from augury.data.sampling import sample_note
from augury.data.source import Request, Source

MOST_ITEMS = 50_000
"""Examples that are read of an iterable, which may have no end."""


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
    for example, label in _examples(x, request.label):
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
    if more:
        notes.append(f"only the first {MOST_ITEMS:,} examples of the iterable were read")
    if len(kept) < seen:
        notes.append(sample_note(len(kept), seen, request.seed, by_class=False))
    names = None if classes is None else tuple(classes)
    y = np.asarray([item[2] for item in kept])
    return Source(array, y, names, notes=tuple(notes), index=index, total=seen)


def _examples(items: Iterable[Any], label: str | None) -> Iterator[tuple[Any, Any]]:
    """Yield examples one at a time, from batches too."""
    for number, item in enumerate(items):
        x, y = split(item, number, label)
        if _is_batch(x, y):
            yield from zip(x, np.asarray(y).tolist(), strict=True)
        else:
            yield x, y


def _is_batch(x: Any, y: Any) -> bool:
    arrays = isinstance(y, Tensor | np.ndarray) and isinstance(x, Tensor | np.ndarray)
    return arrays and y.ndim == 1 and x.ndim >= 2 and len(x) == len(y)
