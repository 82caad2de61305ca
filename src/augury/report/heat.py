"""A table coloured by its numbers: levels and words, which a template draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

LEVELS = ("n4", "n3", "n2", "n1", "z", "p1", "p2", "p3", "p4")
"""Style names of the steps, from far below zero to far above."""

MOST_COLUMNS = 120


@dataclass(frozen=True)
class HeatCell:
    """One number, in words and as a step of colour."""

    text: str
    title: str
    level: str
    flagged: bool
    sure: bool = False


@dataclass(frozen=True)
class HeatMap:
    """Labels, cells and the scale of the colours."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    scale: tuple[str, str]
    """What the palest and the strongest steps stand for: the ends of the legend."""
    left_out: int
    """How many columns are not shown because there are too many."""

    @property
    def flagged(self) -> bool:
        """Whether any cell is marked."""
        return any(cell.flagged for _, cells in self.rows for cell in cells)

    @property
    def sure(self) -> bool:
        """Whether any cell is printed in bold."""
        return any(cell.sure for _, cells in self.rows for cell in cells)

    @property
    def levels(self) -> tuple[str, ...]:
        """The steps of colour, for a legend."""
        return LEVELS


def heat_map(
    labels: Sequence[str],
    columns: Sequence[str],
    values: np.ndarray,
    say: Callable[[float], str],
    flagged: Collection[tuple[int, int]] = (),
    sure: Collection[tuple[int, int]] = (),
    titles: Sequence[Sequence[str]] | None = None,
) -> HeatMap:
    """Colour a matrix about zero; where there are too many columns, the most affected are kept.

    Parameters
    ----------
    labels, columns, values
        The names of rows and columns, and the matrix.
    say
        Writes a number.
    flagged, sure
        Cells, as (row, column), to be marked and to be printed in bold.
    titles
        What the pointer shows of each cell; its number by default.
    """
    size = np.abs(np.where(np.isfinite(values), values, 0.0))
    order = np.argsort(-size.max(axis=0), kind="stable")
    kept = sorted(int(j) for j in order[:MOST_COLUMNS])
    end = float(np.quantile(size[:, kept], 0.98)) or float(size.max()) or 1.0
    middle = len(LEVELS) // 2

    def cell(i: int, j: int) -> HeatCell:
        value = float(values[i, j])
        known = math.isfinite(value)
        step = round(max(-1.0, min(1.0, value / end)) * middle) if known else 0
        text = say(value) if known else "–"
        title = f"{labels[i]}, {columns[j]}: {text if titles is None else titles[i][j]}"
        return HeatCell(text, title, LEVELS[middle + step], (i, j) in flagged, (i, j) in sure)

    rows = tuple((label, tuple(cell(i, j) for j in kept)) for i, label in enumerate(labels))
    shown = tuple(columns[j] for j in kept)
    return HeatMap(shown, rows, (say(-end), say(end)), len(columns) - len(shown))
