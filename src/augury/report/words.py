"""How numbers are written: the unit of a score, and how many digits are worth printing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from augury.results.ranking import Ranking


VERDICTS: tuple[str, ...] = ("helps", "probably helps", "can't tell", "probably hurts", "hurts")

TONES: dict[str, str] = dict(
    zip(VERDICTS, ("helps", "likely", "unsure", "doubtful", "hurts"), strict=True)
)
"""The style name of each verdict, for classes in the page."""

INTERVAL = "95\u00a0% interval"
"""The space must not break: a line should not begin with a per cent sign."""

TRAINED = ("trial", "boosting")
"""The scores that train a model, whose gains are in points; the others are closed forms."""


METRICS = {
    "classification": "accuracy",
    "regression": "R²",
    "multi-label": "mean average precision",
}
"""What points are per cent of, by task; R² is the share of the variance explained."""

_RIDGE = ("loss reduction", "minus held-out loss")
_CLOSED = {
    "alignment": ("alignment", "alignment", "agreement of the averaged kernel with the labels"),
    "centred-alignment": (
        "centred alignment",
        "centred alignment",
        "agreement of the averaged kernel with the labels, both centred",
    ),
    "ridge": (*_RIDGE, "minus the held-out loss of ridge regression on the views"),
    "kernel-ridge": (*_RIDGE, "minus the held-out loss of ridge regression on averaged features"),
}
"""Of each closed form: the unit of its gains, its name, and what it is; higher is better."""


def score_name(ranking: Ranking) -> str:
    """Return what the score of a candidate is, with its unit: ``expected accuracy, %``."""
    if ranking.in_points:
        name = METRICS.get(str(ranking.dataset.get("task")), "accuracy")
        return f"expected {name}, %"
    return _CLOSED[ranking.score][1] if ranking.score in _CLOSED else ranking.score


def score_words(ranking: Ranking) -> str:
    """Return the option that chose the score, and what the score is."""
    if ranking.in_points:
        said = "expected in the planned training: that without augmentation, plus the gain"
        return f"{ranking.score}: {score_name(ranking).removeprefix('expected ')}, {said}"
    said = _CLOSED[ranking.score][2] if ranking.score in _CLOSED else ""
    return f"{ranking.score}: {said}; higher is better" if said else ranking.score


@dataclass(frozen=True)
class Unit:
    """The name of what is measured, and the digits that its intervals justify."""

    name: str
    digits: int

    @classmethod
    def of(cls, ranking: Ranking) -> Unit:
        """Read the unit off a ranking: the last digit printed is that of a typical half-width."""
        name, fewest, most = _unit(ranking.score)
        widths = [(row.high - row.low) / 2 for row in ranking.rows]
        widths = [w for w in widths if math.isfinite(w) and w > 0]
        wanted = math.ceil(-math.log10(float(np.median(widths)))) if widths else fewest
        return cls(name, min(max(wanted, fewest), most))

    def plain(self, value: float) -> str:
        """Write a number without a sign of its own: ``0.431``."""
        return self.signed(value).removeprefix("+")

    def signed(self, value: float) -> str:
        """Write a difference: ``+0.021``, ``−0.004``, ``0.000``."""
        if not math.isfinite(value):
            return "unknown"
        text = f"{value:+.{self.digits}f}"
        if float(text) == 0:
            return text[1:]
        return text.replace("-", "−")

    def gain(self, value: float) -> str:
        """Write a difference with its unit: ``+0.021 alignment``, ``+1.3 points``."""
        return f"{self.sided(value)} {self.name}"

    def span(self, low: float, high: float) -> str:
        """Write an interval: ``+0.018 to +0.024``."""
        return f"{self.sided(low)} to {self.sided(high)}"

    def sided(self, value: float) -> str:
        """Write a difference with as many more digits as show on which side of zero it lies."""
        for digits in range(self.digits, self.digits + 3):
            text = Unit(self.name, digits).signed(value)
            if text[0] != "0":
                return text
        return self.signed(0.0)


def _unit(score: str) -> tuple[str, int, int]:
    """Return the unit of a score, with the fewest and the most digits to print."""
    if score in TRAINED:
        return "points", 1, 3
    return _CLOSED.get(score, (score.replace("-", " "),))[0], 3, 6


def chance(probability: float) -> str:
    """Write a probability: ``82 %``, ``over 99 %``, ``under 1 %``."""
    if probability > 0.99:
        return "over 99\u00a0%"
    return "under 1\u00a0%" if probability < 0.01 else f"{100 * probability:.0f}\u00a0%"


def per_cent(share: float, digits: int = 0) -> str:
    """Write a share: ``19 %``; the space does not break."""
    return f"{100 * share:.{digits}f}\u00a0%"


def duration(seconds: float) -> str:
    """Write a time: ``0.4 s``, ``41 s``, ``2 min 5 s``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
