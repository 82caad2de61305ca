"""T: probability distributions over maps of an input to itself."""

from augury.augmentations.base import Augmentation, Family, Nodes, Params
from augury.augmentations.chain import Chain
from augury.augmentations.combine import Mixture, Power, Then
from augury.augmentations.defaults import default_augmentations, strength_ladder
from augury.augmentations.pixels import (
    blur,
    brightness,
    contrast,
    cutout,
    invert,
    noise,
    posterize,
    solarize,
)
from augury.augmentations.sampled import Sampled
from augury.augmentations.signals import feature_dropout, jitter, shift
from augury.augmentations.spec import FAMILIES, parse, signature
from augury.augmentations.warps import (
    elastic,
    flips,
    horizontal_flip,
    identity,
    pixel_shifts,
    quarter_turns,
    resized_crop,
    rotation,
    scaling,
    shear,
    translation,
    vertical_flip,
)

__all__ = [
    "FAMILIES",
    "Augmentation",
    "Chain",
    "Family",
    "Mixture",
    "Nodes",
    "Params",
    "Power",
    "Sampled",
    "Then",
    "blur",
    "brightness",
    "contrast",
    "cutout",
    "default_augmentations",
    "elastic",
    "feature_dropout",
    "flips",
    "horizontal_flip",
    "identity",
    "invert",
    "jitter",
    "noise",
    "parse",
    "pixel_shifts",
    "posterize",
    "quarter_turns",
    "resized_crop",
    "rotation",
    "scaling",
    "shear",
    "shift",
    "signature",
    "solarize",
    "strength_ladder",
    "translation",
    "vertical_flip",
]
