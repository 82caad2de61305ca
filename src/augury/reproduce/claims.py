"""How claims are judged and their numbers said: the rules, in one place."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from augury.report.section import Claim, Verdict

SCALED = (
    "The paper does not say how its Fourier features are scaled. Its authors' code leaves cosines "
    "and sines at amplitude 1, with which SGD at its rate does not settle on CIFAR-10. Here the "
    "norm is the same for any number of features: half of ‖φ‖² = 4(1 + momentum)/rate, up to "
    "which descent is stable."
)
"""What all experiments that train heads on Fourier features by SGD do differently."""


def graded(value: float, claimed: float, least: float) -> Verdict:
    """Judge a number that should be large.

    It holds from `claimed` up; above `least`, where there would be no effect, it holds weaker.
    """
    if value >= claimed:
        return "holds"
    return "holds weaker" if value > least else "does not hold"


def unchecked(words: str, paper: str, why: str = "not computed") -> Claim:
    """Give a claim that could not be checked, with the reason in place of a number."""
    return Claim(words, paper, why, "could not be checked")


def mean_and_spread(values: Sequence[float], digits: int = 2) -> str:
    """Write a mean with the standard deviation over trials: ``97.31 ± 0.12``."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {statistics.stdev(values):.{digits}f}"
