"""Gain against strength: the settings of one family, from mild to strong, and how far is safe."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from augury.results.ranking import Row


@dataclass(frozen=True)
class StrengthCurve:
    """One family's settings, from mild to strong."""

    family: str
    rows: tuple[Row, ...]

    @property
    def strengths(self) -> int:
        """How many different strengths were tried."""
        return len({row.magnitude for row in self.rows})

    @property
    def safe(self) -> Row | None:
        """The strongest setting, beyond which gains fall below half of the best one.

        The best one is that of the settings whose verdict is *helps* or *probably helps*; None if
        there is none.
        """
        known = [k for k, r in enumerate(self.rows) if r.verdict in ("helps", "probably helps")]
        if not known:
            return None
        last = best = max(known, key=lambda k: self.rows[k].gain)
        while last + 1 < len(self.rows) and self.rows[last + 1].gain >= self.rows[best].gain / 2:
            last += 1
        return self.rows[last]


def strength_curves(rows: tuple[Row, ...]) -> list[StrengthCurve]:
    """Group the rows of plain augmentations by family, from mild to strong."""
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.family and row.magnitude is not None:
            groups[row.family].append(row)
    return [
        StrengthCurve(family, tuple(sorted(members, key=lambda row: row.magnitude or 0.0)))
        for family, members in groups.items()
    ]
