"""Gain against strength: the settings of one family, from mild to strong, and how far is safe."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from augury.results import Row

_SPEC = re.compile(r"([A-Za-z_]\w*)\(([^()]*)\)")
_SMALLER_IS_STRONGER = {"resized_crop", "posterize", "solarize"}
STRONGEST = {"rotation": 180.0}
"""Strengths beyond which there is nothing: a full turn."""


@dataclass(frozen=True)
class Curve:
    """One family's settings, from mild to strong.

    A range of factors, as of ``scaling(0.7,1.3)``, is as strong as it is wide; where a smaller
    number is stronger, as for ``resized_crop(0.25)``, the strength is its negative.
    """

    family: str
    strengths: tuple[float, ...]
    rows: tuple[Row, ...]

    @property
    def safe(self) -> Row | None:
        """The strongest setting, beyond which gains fall below half of the best one.

        None if no setting is expected to gain anything.
        """
        best = max(range(len(self.rows)), key=lambda k: self.rows[k].gain)
        if self.rows[best].gain <= 0:
            return None
        last = best
        while last + 1 < len(self.rows) and self.rows[last + 1].gain >= self.rows[best].gain / 2:
            last += 1
        return self.rows[last]


def curves(rows: tuple[Row, ...], fewest: int = 2) -> list[Curve]:
    """Group the rows of plain families that were tried at `fewest` strengths or more."""
    groups: defaultdict[str, list[tuple[float, Row]]] = defaultdict(list)
    for row in rows:
        spec = _SPEC.fullmatch(row.augmentation)
        strength = _strength(spec[1], spec[2]) if spec else None
        if spec and strength is not None:
            groups[spec[1]].append((strength, row))
    found = []
    for family, members in groups.items():
        members.sort(key=lambda member: member[0])
        strengths, settings = zip(*members, strict=True)
        if len(set(strengths)) >= fewest:
            found.append(Curve(family, strengths, settings))
    return found


def _strength(family: str, arguments: str) -> float | None:
    try:
        values = [float(word) for word in arguments.split(",")]
    except ValueError:
        return None
    if len(values) == 2:
        return values[1] - values[0]
    if len(values) != 1:
        return None
    return -values[0] if family in _SMALLER_IS_STRONGER else values[0]
