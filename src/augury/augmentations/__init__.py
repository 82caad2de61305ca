"""T: probability distributions over maps of an input to itself."""

from augury.augmentations.base import Augmentation, Family, Nodes, Params
from augury.augmentations.callable import Transform, TransformedDataset
from augury.augmentations.chain import Chain
from augury.augmentations.colour import (
    autocontrast,
    brightness,
    contrast,
    equalize,
    gamma,
    grayscale,
    hue,
    invert,
    posterize,
    saturation,
    solarize,
)
from augury.augmentations.combine import Mixture, Power, Then
from augury.augmentations.compression import jpeg
from augury.augmentations.defaults import default_augmentations, strength_ladder
from augury.augmentations.families import FAMILIES
from augury.augmentations.geometry import (
    elastic,
    perspective,
    resized_crop,
    rotation,
    scaling,
    shear,
    translation,
)
from augury.augmentations.pixels import blur, cutout, erasing, noise, sharpness
from augury.augmentations.recipes import rand_augment, trivial_augment
from augury.augmentations.sampled import Sampled
from augury.augmentations.signals import feature_dropout, jitter, shift
from augury.augmentations.spec import parse, signature
from augury.augmentations.symmetries import (
    flips,
    horizontal_flip,
    identity,
    pixel_shifts,
    quarter_turns,
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
    "Transform",
    "TransformedDataset",
    "autocontrast",
    "blur",
    "brightness",
    "contrast",
    "cutout",
    "default_augmentations",
    "elastic",
    "equalize",
    "erasing",
    "feature_dropout",
    "flips",
    "gamma",
    "grayscale",
    "horizontal_flip",
    "hue",
    "identity",
    "invert",
    "jitter",
    "jpeg",
    "noise",
    "parse",
    "perspective",
    "pixel_shifts",
    "posterize",
    "quarter_turns",
    "rand_augment",
    "resized_crop",
    "rotation",
    "saturation",
    "scaling",
    "sharpness",
    "shear",
    "shift",
    "signature",
    "solarize",
    "strength_ladder",
    "translation",
    "trivial_augment",
    "vertical_flip",
]
