"""How invariant each layer of a network is to augmentations."""

from augury.networks.invariance.measure import measure_invariance
from augury.networks.invariance.statistic import Invariance

__all__ = ["Invariance", "measure_invariance"]
