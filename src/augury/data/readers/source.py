"""What a reader of a format hands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Source(NamedTuple):
    """Examples and labels as a file holds them, before they are checked and scaled."""

    x: np.ndarray
    y: Any  # None where new examples came without labels
    classes: tuple[str, ...] | None = None
    kind: str | None = None
    notes: tuple[str, ...] = ()
    columns: Sequence[tuple[str, str | None]] = ()
    """A table's features: the column's name, and the word that a one-hot feature stands for."""
