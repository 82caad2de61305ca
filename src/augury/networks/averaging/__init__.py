"""Run views up to a layer, average their features there, and run the rest of the network once."""

from augury.networks.averaging.average import Averaging
from augury.networks.averaging.averaged import Averaged

__all__ = ["Averaged", "Averaging"]
