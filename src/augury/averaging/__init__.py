"""Versions run up to a layer, their features are averaged, and the rest runs once."""

from augury.averaging.average import Averaging
from augury.averaging.averaged import Averaged
from augury.averaging.cut import Cut
from augury.averaging.probe import cut_at, cuts
from augury.averaging.tangent import TangentPropagation

__all__ = ["Averaged", "Averaging", "Cut", "TangentPropagation", "cut_at", "cuts"]
