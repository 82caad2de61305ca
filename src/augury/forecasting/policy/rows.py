"""Rows of a policy's table: what a round says of one policy."""

from __future__ import annotations

from dataclasses import replace

from scipy.special import stdtr, stdtrit

from augury.augmentations import Augmentation
from augury.forecasting.forecast import PLANNED, Judgement
from augury.forecasting.policy.policy import PolicyRow


def as_row(policy: Augmentation, role: str, found: Judgement, rounds: int) -> PolicyRow:
    """Return what was found of a policy as a row."""
    return PolicyRow(
        repr(policy), role, found.gain, found.low, found.high, found.probability, rounds
    )


def at_gain(row: PolicyRow, gain: float) -> PolicyRow:
    """Return a row with another gain, and an interval and a probability that fit it."""
    half, freedom = max((row.high - row.low) / 2, 1e-9), PLANNED.freedom
    return replace(
        row,
        gain=gain,
        low=row.low + gain - row.gain,
        high=row.high + gain - row.gain,
        probability=float(stdtr(freedom, float(stdtrit(freedom, 0.975)) * gain / half)),
    )


def bounded(row: PolicyRow, baseline: float) -> PolicyRow:
    """Keep a forecast within what accuracies allow; rounds differ in what they expect of none."""
    low, gain, high = (
        min(100 - baseline, max(-baseline, value)) for value in (row.low, row.gain, row.high)
    )
    return replace(row, low=low, gain=gain, high=high)


def none(chosen: Augmentation) -> PolicyRow:
    """Return the row of no augmentation, where that is the choice."""
    return PolicyRow(repr(chosen), "chosen", 0.0, 0.0, 0.0, 0.5, 2)


def untried(chosen: Augmentation) -> PolicyRow:
    """Return the row of a choice of which nothing is known."""
    return PolicyRow(repr(chosen), "chosen", 0.0, -100.0, 100.0, 0.5, 0)
