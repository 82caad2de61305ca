"""Whatever a user holds in Python, as examples and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.utils.data import TensorDataset

from augury._base.errors import AuguryError
from augury.data.layout import to_array
from augury.data.readers.mapstyle import is_map_style, read_map_style
from augury.data.source import Request, Source


def read_object(
    x: Any, y: Any, request: Request, classes: Sequence[object] | None = None
) -> Source:
    """Read arrays, frames, datasets and iterables; `classes` are names for 0, 1, …"""
    names = None if classes is None else tuple(str(name) for name in classes)
    if isinstance(x, TensorDataset) and y is None and len(x.tensors) == 2:
        x, y = x.tensors
    if is_map_style(x, y):
        return read_map_style(x, y, request, names)
    if y is None:
        raise AuguryError("labels are missing: give y beside x, or a dataset of pairs (x, y)")
    return Source(to_array(x), y, names)
