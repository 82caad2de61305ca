"""Collections of series as aeon and sktime hold them: lists of arrays, and pandas frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.text import flat
from augury.data.gaps import stack_series
from augury.data.layout import to_array
from augury.data.source import Source


def is_collection(x: Any) -> bool:
    """Return whether `x` is a list of arrays ``(channels, length)`` or a frame of sktime's."""
    if isinstance(x, list | tuple):
        arrays = len(x) > 0 and all(isinstance(a, np.ndarray | Tensor) and a.ndim == 2 for a in x)
        # of one shape they may be images, and are read as before
        return arrays and len({tuple(a.shape) for a in x}) > 1
    return _is_frame(x) and (_is_nested(x) or x.index.nlevels == 2)


def read_collection(x: Any, y: Any, classes: tuple[str, ...] | None) -> Source:
    """Read a collection of series with its labels."""
    if isinstance(x, list | tuple):
        series = [to_array(one).astype(np.float64) for one in x]
    elif _is_nested(x):
        series = [_nested(row, number) for number, row in enumerate(x.itertuples(index=False))]
    else:  # (instance, time) in the index
        groups = x.groupby(level=0, sort=False)
        series = [group.to_numpy(np.float64, na_value=np.nan).T for _, group in groups]
    array, notes = stack_series(series)
    return Source(array, y, classes, kind="series", notes=tuple(notes))


def _nested(row: Any, number: int) -> np.ndarray:
    channels = [np.asarray(cell, dtype=np.float64) for cell in row]
    if len({len(channel) for channel in channels}) > 1:
        raise AuguryError(
            f"the channels of example {number} have {flat([len(c) for c in channels])} values; "
            "give one length"
        )
    return np.stack(channels)


def _is_frame(x: Any) -> bool:
    return type(x).__module__.split(".")[0] == "pandas" and type(x).__name__ == "DataFrame"


def _is_nested(x: Any) -> bool:
    """Return whether every cell of a frame is a series of its own."""
    first = x.iloc[0].tolist() if len(x) else []
    return bool(first) and all(type(cell).__name__ in ("Series", "ndarray") for cell in first)
