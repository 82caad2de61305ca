"""How invariant each layer of a network is to augmentations."""

from augury.invariance.measure import profile
from augury.invariance.result import Cell, Profile
from augury.invariance.statistic import Invariance

__all__ = ["Cell", "Invariance", "Profile", "profile"]
