"""The geometry of a chart of values with intervals, one per line; a template draws it.

Positions along the axis are percentages, so that the picture fills any width while its text
keeps its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROW, AXIS = 24, 26
"""Heights in pixels: of a line, and of the strip of numbers over and under the lines."""

_LOPSIDED = 3.0  # how many times further down than up the axis may reach before it is cut


@dataclass(frozen=True)
class ChartInterval:
    """A value with its interval: what is to be drawn on one line."""

    label: str
    value: float
    low: float
    high: float
    tone: str
    text: str
    """The value in words, at the end of the line."""
    title: str
    """All of it in words, for the pointer and for screen readers."""


@dataclass(frozen=True)
class Line:
    """One interval, placed: `left`, `right` and `at` in per cent, `y` in pixels."""

    interval: ChartInterval
    y: float
    left: float | None
    right: float | None
    at: float | None
    beyond: bool
    """Whether the value itself lies past the lower end of the axis."""
    cut: bool
    """Whether the value is shown, but its interval ends past the lower end of the axis."""


@dataclass(frozen=True)
class Tick:
    """A number on the axis; the minor ones go first where there is little room."""

    at: float
    text: str
    minor: bool


@dataclass(frozen=True)
class Chart:
    """All that a template needs to draw intervals on a common axis."""

    title: str
    description: str
    lines: tuple[Line, ...]
    ticks: tuple[Tick, ...]
    zero: float
    height: int
    beyond: int
    """How many values lie past the lower end of the axis."""
    cut: int
    """How many of the other intervals are cut there."""

    @property
    def arrows(self) -> str:
        """What the arrows at the left edge mark; empty if there is none."""
        found = ("values",) * (self.beyond > 0) + ("ends of intervals",) * (self.cut > 0)
        return " and ".join(found)


def interval_chart(
    intervals: Sequence[ChartInterval],
    title: str,
    description: str,
    say: Callable[[float, int], str],
) -> Chart:
    """Place intervals on an axis that includes zero; ``say(value, digits)`` writes its numbers."""
    low, high = _domain(intervals)
    step = _step(high - low)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))

    def place(value: float) -> float | None:
        if not math.isfinite(value):
            return None
        return round(100 * (min(max(value, low), high) - low) / (high - low), 2)

    lines = tuple(
        Line(
            interval,
            AXIS + ROW * (k + 0.5),
            place(interval.low),
            place(interval.high),
            place(interval.value),
            interval.value < low,
            -math.inf < interval.low < low <= interval.value and interval.high < math.inf,
        )
        for k, interval in enumerate(intervals)
    )
    ticks = tuple(
        Tick(place(k * step) or 0.0, say(k * step, digits) if k else "0", k % 2 == 1)
        for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    )
    height = 2 * AXIS + ROW * len(lines)
    beyond, cut = sum(line.beyond for line in lines), sum(line.cut for line in lines)
    return Chart(title, description, lines, ticks, place(0.0) or 0.0, height, beyond, cut)


def _domain(intervals: Sequence[ChartInterval]) -> tuple[float, float]:
    """Return the ends of the axis.

    Great harm would press all that helps into one corner, so the lower end is cut where it would
    reach much further from zero than the upper one.
    """
    ends = [e for i in intervals for e in (i.low, i.high, i.value) if math.isfinite(e)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    if any(i.value > 0 for i in intervals):
        low = max(low, -_LOPSIDED * high)
    pad = 0.04 * (high - low) or 1.0
    return low - pad, high + pad


def _step(width: float) -> float:
    """Return a round step (1, 2 or 5 times a power of ten) that makes about seven ticks."""
    power = 10.0 ** math.floor(math.log10(width / 7))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= width / 7 * (1 - 1e-9))
