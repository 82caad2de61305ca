"""φ: inputs to vectors."""

from augury.features.base import FeatureMap
from augury.features.fourier import FourierFeatures
from augury.features.simple import Flatten, Layer

__all__ = ["FeatureMap", "Flatten", "FourierFeatures", "Layer"]
