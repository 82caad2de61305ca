"""Versions run up to a layer, their features are averaged, and the rest runs once."""

from augury.networks.averaging.average import Averaging
from augury.networks.averaging.averaged import Averaged
from augury.networks.averaging.cut import Cut
from augury.networks.averaging.probe import cut_at, cuts
from augury.networks.averaging.tangent import TangentPropagation

__all__ = ["Averaged", "Averaging", "Cut", "TangentPropagation", "cut_at", "cuts"]
