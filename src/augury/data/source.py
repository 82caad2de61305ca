"""What a reader of a format hands on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Source(NamedTuple):
    """Examples and labels as a file holds them, before they are checked and scaled."""

    x: np.ndarray
    y: Any
    classes: tuple[str, ...] | None = None
    kind: str | None = None
    notes: tuple[str, ...] = ()
