"""What is tried when the user names nothing: every family, at a mild and a strong setting."""

from __future__ import annotations

from collections.abc import Iterable

from augury._base.errors import AuguryError
from augury.augmentations.base import Augmentation
from augury.augmentations.families import FAMILIES
from augury.augmentations.spec import parse

_DEFAULTS = {
    "image": (
        "rotation(5) rotation(15) rotation(30) rotation(60) rotation(180) quarter_turns "
        "horizontal_flip vertical_flip flips translation(0.05) translation(0.1) translation(0.2) "
        "scaling(0.9,1.1) scaling(0.7,1.3) shear(10) shear(25) resized_crop(0.64) "
        "resized_crop(0.25) blur(0.05,1.0) blur(0.5,2.0) brightness(0.25) brightness(0.6) "
        "contrast(0.35) contrast(0.7) noise(0.05) noise(0.2) cutout(0.25) cutout(0.5) invert "
        "solarize(0.3) posterize(2) elastic(0.05) elastic(0.12) "
        "perspective(0.15) perspective(0.4) saturation(0.4) saturation(0.9) hue(0.05) hue(0.25) "
        "grayscale(0.2) grayscale(0.5) gamma(0.25) gamma(0.6) sharpness(0.4) sharpness(0.9) "
        "autocontrast(0.5) equalize(0.5) erasing(0.1) erasing(0.33) jpeg(60) jpeg(15) "
        "trivial_augment(1) rand_augment(2,9)"
    ),
    # no sign_flip and no gain: a network does not see them in spectrograms of one level
    "sound": (
        "shift(0.05) shift(0.2) speed(0.1) speed(0.3) speed(0.6) pitch(2) pitch(5) "
        "snr_noise(20,30) snr_noise(5,15) snr_noise(5,15,colour=1) snr_noise(5,15,colour=2) "
        "band_pass(0.75) band_pass(0.35) reverb(0.1) reverb(0.5) "
        "clipping(0.1) clipping(0.4) time_flip time_mask(0.1) time_mask(0.3) "
        "frequency_mask(0.1) frequency_mask(0.3) time_warp(0.4)"
    ),
    "vector": (
        "column_noise(0.05) column_noise(0.2) column_noise(0.5) swap_noise(0.05) swap_noise(0.15) "
        "swap_noise(0.4) column_dropout(0.05) column_dropout(0.15) column_dropout(0.4) "
        "neighbour_mix(0.25) neighbour_mix(0.5) neighbour_mix(1.0)"
    ),
    "series": (
        "shift(0.02) shift(0.05) shift(0.1) shift(0.25) scaling(0.9,1.1) scaling(0.7,1.3) "
        "scaling(0.4,1.6) jitter(0.05) jitter(0.1) jitter(0.3) feature_dropout(0.1) "
        "feature_dropout(0.3) time_warp(0.2) time_warp(0.6) window_slice(0.9) window_slice(0.6) "
        "window_warp(0.1) window_warp(0.3) crop(0.9) crop(0.6) magnitude_warp(0.1) "
        "magnitude_warp(0.4) drift(0.2) drift(0.6) permutation(3) permutation(8) time_mask(0.1) "
        "time_mask(0.4) frequency_mask(0.1) frequency_mask(0.4) frequency_shift(0.01) "
        "frequency_shift(0.05) channel_dropout(0.25) time_flip sign_flip"
    ),
}


_COLOURS = ("saturation", "hue", "grayscale")
"""Families that do something to images of three channels alone."""


def default_augmentations(kind: str, shape: tuple[int, ...]) -> list[Augmentation]:
    """Return the default candidates for a kind of data, without those that its shape rules out."""
    ruled_out: set[str] = set()
    if kind == "image":
        ruled_out |= set(_COLOURS) if shape[0] != 3 else set()
        ruled_out |= {"quarter_turns"} if shape[-1] != shape[-2] else set()
    if kind == "series" and shape[0] == 1:
        ruled_out.add("channel_dropout")
    specs = _DEFAULTS[kind].split()
    return [parse(spec) for spec in specs if spec.partition("(")[0] not in ruled_out]


def strength_ladder(
    kind: str, families: Iterable[str] | None = None, *, shape: tuple[int, ...] | None = None
) -> list[Augmentation]:
    """Return families at several strengths, mild to strong; by default all that suit the data."""
    swept = {name: family for name, family in FAMILIES.items() if getattr(family, "ladder", ())}
    for name in families or ():
        if name not in swept:
            known = ", ".join(known for known, family in swept.items() if kind in family.kinds)
            raise AuguryError(
                f"{name} has no strength to sweep; families for {kind} data with one: {known}"
            )
    grey = shape is not None and kind == "image" and shape[0] != 3
    usual = [n for n in swept if kind in swept[n].kinds and not (grey and n in _COLOURS)]
    wanted = usual if families is None else list(families)
    return [swept[name](*setting) for name in wanted for setting in swept[name].ladder]  # type: ignore[attr-defined,call-arg]  # families with a ladder
