"""Sums over examples that add, and what follows from them."""

from augury.statistics.alignment import Alignment
from augury.statistics.base import Estimate, Statistic, group_of
from augury.statistics.heldout import HeldOutRisk
from augury.statistics.jackknife import Interval, jackknife
from augury.statistics.ridge import RidgeRisk
from augury.statistics.temperature import calibrated_log_loss, fit_scale

__all__ = [
    "Alignment",
    "Estimate",
    "HeldOutRisk",
    "Interval",
    "RidgeRisk",
    "Statistic",
    "calibrated_log_loss",
    "fit_scale",
    "group_of",
    "jackknife",
]
