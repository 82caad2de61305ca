"""T: probability distributions over maps of an input to itself."""

from augury.augmentations.background import background
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
from augury.augmentations.playback import pitch, speed
from augury.augmentations.recipes import rand_augment, trivial_augment
from augury.augmentations.sampled import Sampled
from augury.augmentations.series import (
    channel_dropout,
    crop,
    drift,
    magnitude_warp,
    permutation,
    shift,
    sign_flip,
    time_flip,
    time_mask,
    time_warp,
    window_slice,
    window_warp,
)
from augury.augmentations.signals import feature_dropout, jitter
from augury.augmentations.sound import band_pass, clipping, gain, reverb, snr_noise
from augury.augmentations.spec import parse, signature
from augury.augmentations.spectrum import frequency_mask, frequency_shift
from augury.augmentations.symmetries import (
    flips,
    horizontal_flip,
    identity,
    pixel_shifts,
    quarter_turns,
    vertical_flip,
)
from augury.augmentations.tables import (
    Table,
    column_dropout,
    column_noise,
    neighbour_mix,
    swap_noise,
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
    "Table",
    "Then",
    "Transform",
    "TransformedDataset",
    "autocontrast",
    "background",
    "band_pass",
    "blur",
    "brightness",
    "channel_dropout",
    "clipping",
    "column_dropout",
    "column_noise",
    "contrast",
    "crop",
    "cutout",
    "default_augmentations",
    "drift",
    "elastic",
    "equalize",
    "erasing",
    "feature_dropout",
    "flips",
    "frequency_mask",
    "frequency_shift",
    "gain",
    "gamma",
    "grayscale",
    "horizontal_flip",
    "hue",
    "identity",
    "invert",
    "jitter",
    "jpeg",
    "magnitude_warp",
    "neighbour_mix",
    "noise",
    "parse",
    "permutation",
    "perspective",
    "pitch",
    "pixel_shifts",
    "posterize",
    "quarter_turns",
    "rand_augment",
    "resized_crop",
    "reverb",
    "rotation",
    "saturation",
    "scaling",
    "sharpness",
    "shear",
    "shift",
    "sign_flip",
    "signature",
    "snr_noise",
    "solarize",
    "speed",
    "strength_ladder",
    "swap_noise",
    "time_flip",
    "time_mask",
    "time_warp",
    "translation",
    "trivial_augment",
    "vertical_flip",
    "window_slice",
    "window_warp",
]
