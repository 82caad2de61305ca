"""Small curves: gain against the strength of a family, or against a part of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from augury.report.words import TONES, Unit

if TYPE_CHECKING:
    from augury.results.ranking import Ranking

_WIDTH, _HEIGHT, _MARGIN = 260.0, 120.0, 12.0


@dataclass(frozen=True)
class Point:
    """One setting: its gain, the interval, how it is shown and what is written under it."""

    label: str
    text: str
    """The gain in words."""
    gain: float
    low: float
    high: float
    tone: str
    title: str


@dataclass(frozen=True)
class Dot:
    """One setting on a curve, placed in the drawing."""

    x: float
    y: float
    top: float
    bottom: float
    tone: str
    label: str
    text: str
    title: str


@dataclass(frozen=True)
class Drawing:
    """One curve, ready to be drawn; settings stand at even distances."""

    name: str
    said: str
    description: str
    width: float
    height: float
    zero: float
    shaded: tuple[float, float] | None
    """From where to where the drawing is shaded."""
    dots: tuple[Dot, ...]

    @property
    def line(self) -> str:
        """The points of the curve, as an SVG polyline takes them."""
        return " ".join(f"{dot.x:.1f},{dot.y:.1f}" for dot in self.dots)


def strength_curves(ranking: Ranking, fewest: int = 3) -> tuple[Drawing, ...]:
    """Draw the families that were tried at three strengths or more; the safe range is shaded."""
    unit = Unit.of(ranking)
    drawings = []
    for curve in ranking.curves(fewest):
        points = [
            Point(
                row.augmentation[len(curve.family) + 1 : -1],
                unit.signed(row.gain),
                row.gain,
                row.low,
                row.high,
                TONES[row.verdict],
                f"{row.augmentation}: {unit.gain(row.gain)}, {unit.span(row.low, row.high)}",
            )
            for row in curve.rows
        ]
        said, until = "No setting is known to help.", None
        if curve.safe is not None:
            said = f"Up to {curve.safe.augmentation}, at least half of the best gain is expected."
            if curve.safe is curve.rows[-1]:
                said += " Stronger settings were not tried."
            until = curve.rows.index(curve.safe)
        shaded = None if until is None else (None, until)
        drawings.append(draw(curve.family, said, "gain against strength", points, shaded))
    return tuple(drawings)


def trend_curves(ranking: Ranking) -> tuple[Drawing, ...]:
    """Draw the leaders' gains against epochs and examples; what is planned is shaded."""
    unit = Unit.of(ranking)
    drawings = []
    for trend in ranking.extrapolation:
        points = []
        ends = zip(trend.values, trend.gains, trend.lows, trend.highs, strict=True)
        for value, gain, low, high in ends:
            tone = "helps" if low > 0 else "hurts" if high < 0 else "unsure"
            title = f"{value:,.0f} {trend.along}: {unit.gain(gain)}, {unit.span(low, high)}"
            points.append(Point(f"{value:,.0f}", unit.signed(gain), gain, low, high, tone, title))
        planned = ranking.plan.get(trend.along)
        at = trend.values.index(planned) if planned in trend.values else None
        said = f"Gain against {trend.along}."
        if at is not None:
            said = f"Gain against {trend.along}; planned: {planned:,}."
        shaded = None if at is None else (at, at)
        drawings.append(
            draw(trend.augmentation, said, f"gain against {trend.along}", points, shaded)
        )
    return tuple(drawings)


def draw(
    name: str,
    said: str,
    what: str,
    points: Sequence[Point],
    shaded: tuple[int | None, int] | None,
) -> Drawing:
    """Place points on a drawing; shade from one point (None: the left edge) to another."""
    low = min(0.0, *(point.low for point in points))
    high = max(0.0, *(point.high for point in points))
    scale = (_HEIGHT - 2 * _MARGIN) / ((high - low) or 1.0)

    def place(value: float) -> float:
        return _MARGIN + (high - value) * scale

    step = (_WIDTH - 4 * _MARGIN) / max(len(points) - 1, 1)
    dots = tuple(
        Dot(
            2 * _MARGIN + k * step,
            place(point.gain),
            place(point.high),
            place(point.low),
            point.tone,
            point.label,
            point.text,
            point.title,
        )
        for k, point in enumerate(points)
    )
    span = None
    if shaded is not None:
        first, last = shaded
        span = (0.0 if first is None else dots[first].x - _MARGIN, dots[last].x + _MARGIN)
    text = f"{name}: {what}. {said}"
    return Drawing(name, said, text, _WIDTH, _HEIGHT, place(0.0), span, dots)
