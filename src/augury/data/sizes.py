"""The size of images: as requested, or a default if there are several sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from augury._base.errors import AuguryError
from augury._base.given import as_whole

LARGEST_SIDE = 64
"""A larger side costs more time than it tells: trials train on images of this side or less."""


def default_side(sizes: Sequence[tuple[int, int]]) -> int:
    """Return the median of the images' shorter sides, at most `LARGEST_SIDE`.

    Parameters
    ----------
    sizes
        Each image's height and width.
    """
    shorter = np.minimum(*np.array(sizes).T)
    return int(max(1, min(LARGEST_SIDE, np.median(shorter))))


def sides(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """Return a size as height and width; raise if it is not valid."""
    if size is None:
        return None
    given = list(size) if isinstance(size, list | tuple) else [size, size]
    if len(given) != 2:
        raise AuguryError(f"size must be a whole number of pixels, or two, got {size!r}")
    height, width = (as_whole("size", side, 1) for side in given)
    return height, width
