"""Sums over examples that add, and what follows from them."""

from augury.statistics.alignment import Alignment
from augury.statistics.base import Estimate, Statistic, group_of

__all__ = ["Alignment", "Estimate", "Statistic", "group_of"]
