"""Strength curves: gain against the strength of a family, with the safe range marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from augury.report.words import TONES, Unit

if TYPE_CHECKING:
    from augury.results.ranking import Ranking

_WIDTH, _HEIGHT, _MARGIN = 260.0, 120.0, 12.0


@dataclass(frozen=True)
class Dot:
    """One setting on a curve, placed in the drawing."""

    x: float
    y: float
    top: float
    bottom: float
    tone: str
    label: str
    title: str


@dataclass(frozen=True)
class Drawing:
    """One family's curve, ready to be drawn; settings stand at even distances."""

    family: str
    width: float
    height: float
    zero: float
    safe: float | None
    said: str
    dots: tuple[Dot, ...]

    @property
    def line(self) -> str:
        """The points of the curve, as an SVG polyline takes them."""
        return " ".join(f"{dot.x:.1f},{dot.y:.1f}" for dot in self.dots)


def strength_curves(ranking: Ranking, fewest: int = 3) -> tuple[Drawing, ...]:
    """Draw the families that were tried at three strengths or more."""
    unit = Unit.of(ranking)
    drawings = []
    for curve in ranking.curves(fewest):
        low = min(0.0, *(row.low for row in curve.rows))
        high = max(0.0, *(row.high for row in curve.rows))
        scale = (_HEIGHT - 2 * _MARGIN) / ((high - low) or 1.0)

        def place(value: float, high: float = high, scale: float = scale) -> float:
            return _MARGIN + (high - value) * scale

        step = (_WIDTH - 4 * _MARGIN) / (len(curve.rows) - 1)
        dots = [
            Dot(
                2 * _MARGIN + k * step,
                place(row.gain),
                place(row.high),
                place(row.low),
                TONES[row.verdict],
                row.augmentation[len(curve.family) + 1 : -1],
                f"{row.augmentation}: {unit.gain(row.gain)}, {unit.span(row.low, row.high)}",
            )
            for k, row in enumerate(curve.rows)
        ]
        safe = curve.safe
        said = "No setting is expected to gain."
        if safe is not None:
            said = f"Safe up to {safe.augmentation}: at least half of the best gain."
        edge = None if safe is None else dots[curve.rows.index(safe)].x
        drawings.append(Drawing(curve.family, _WIDTH, _HEIGHT, place(0.0), edge, said, tuple(dots)))
    return tuple(drawings)
