"""Every family that a spec can name, in the order in which they are listed to users.

To add one: write a dataclass (`frozen=True, repr=False`) that derives from `Family` in the file of
its kind, with a `ladder` from mild to strong if it has a strength, and name it here.
"""

from __future__ import annotations

from augury.augmentations import (
    colour,
    compression,
    geometry,
    pixels,
    playback,
    recipes,
    series,
    signals,
    sound,
    spectrum,
    symmetries,
    tables,
)
from augury.augmentations.base import Augmentation

FAMILIES: dict[str, type[Augmentation]] = {
    family.__name__: family
    for family in (
        symmetries.identity,
        geometry.rotation,
        symmetries.quarter_turns,
        symmetries.pixel_shifts,
        symmetries.horizontal_flip,
        symmetries.vertical_flip,
        symmetries.flips,
        geometry.translation,
        geometry.scaling,
        geometry.shear,
        geometry.perspective,
        geometry.resized_crop,
        geometry.elastic,
        pixels.blur,
        pixels.sharpness,
        colour.brightness,
        colour.contrast,
        colour.saturation,
        colour.hue,
        colour.grayscale,
        colour.gamma,
        colour.autocontrast,
        colour.equalize,
        pixels.noise,
        pixels.cutout,
        pixels.erasing,
        compression.jpeg,
        colour.invert,
        colour.solarize,
        colour.posterize,
        recipes.trivial_augment,
        recipes.rand_augment,
        signals.jitter,
        signals.feature_dropout,
        tables.column_noise,
        tables.swap_noise,
        tables.column_dropout,
        tables.neighbour_mix,
        series.shift,
        series.time_warp,
        series.window_slice,
        series.window_warp,
        series.crop,
        series.magnitude_warp,
        series.drift,
        series.permutation,
        series.time_mask,
        spectrum.frequency_mask,
        spectrum.frequency_shift,
        series.channel_dropout,
        series.time_flip,
        series.sign_flip,
        sound.gain,
        playback.speed,
        playback.pitch,
        sound.snr_noise,
        sound.band_pass,
        sound.reverb,
        sound.clipping,
    )
}
