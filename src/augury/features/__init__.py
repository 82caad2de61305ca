"""φ: inputs to vectors."""

from augury.features.augmented import AugmentedFourier
from augury.features.base import FeatureMap
from augury.features.composed import Composed
from augury.features.fourier import FourierFeatures
from augury.features.gradient import GradientFeatures
from augury.features.patches import PatchFeatures
from augury.features.simple import Flatten

__all__ = [
    "AugmentedFourier",
    "Composed",
    "FeatureMap",
    "Flatten",
    "FourierFeatures",
    "GradientFeatures",
    "PatchFeatures",
]
