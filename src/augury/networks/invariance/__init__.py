"""How invariant each layer of a network is to augmentations."""

from augury.networks.invariance.measure import profile
from augury.networks.invariance.statistic import Invariance
from augury.results.invariance import Cell, Profile

__all__ = ["Cell", "Invariance", "Profile", "profile"]
