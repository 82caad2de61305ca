"""Versions run up to a layer, their features are averaged, and the rest runs once."""

from augury.averaging.average import Averaged, Averaging
from augury.averaging.cut import Cut
from augury.averaging.probe import cut_at, cuts

__all__ = ["Averaged", "Averaging", "Cut", "cut_at", "cuts"]
