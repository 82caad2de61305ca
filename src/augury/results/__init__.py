"""Frozen results that know how to become a table, JSON, a figure or a page."""

from augury.results.ranking import Baseline, Gallery, Ranking, Row
from augury.results.strength import StrengthCurve

__all__ = ["Baseline", "Gallery", "Ranking", "Row", "StrengthCurve"]
