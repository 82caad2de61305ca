"""What is expected of training without augmentation, against which every gain is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class BaselineForecast:
    """No augmentation: what the trial showed, and what is expected of the planned training."""

    tried: float
    """Accuracy in the trial, as a share; or the share of the variance explained."""
    expected: float
    """The same in the planned training."""
    error: float
    """Standard error of `tried`."""
    chance: float
    """What the most frequent class alone would give."""
    balanced: bool
    """Whether all classes get the same weight, because they are very imbalanced."""
    luck: float = 0.0
    """Standard deviation of the accuracy that guessing has on so many examples."""
    faultless: bool = False
    """Whether every held-out example was classified correctly in every fold."""
    sampling: float = 0.0
    """Standard error of `tried` that the number of held-out examples leaves."""

    @property
    def learnt(self) -> bool:
        """Whether the network surely knew more than which class is the most frequent."""
        return self.tried > self.chance + max(3 * self.error, self._least)

    @property
    def unstable(self) -> bool:
        """Whether it seemed to, but runs differed too much to be sure."""
        return not self.learnt and self.tried > self.chance + self._least

    @property
    def _least(self) -> float:
        return max(0.015, 2 * self.luck)

    def interval(self, lowest: float) -> tuple[float, float]:
        """Return the 95 % interval of what is expected, in points from `lowest` to 100."""
        half = 1.96 * math.hypot(self.error, self.sampling)
        ends = 100 * (self.expected - half), 100 * (self.expected + half)
        return max(lowest, ends[0]), min(100.0, ends[1])
