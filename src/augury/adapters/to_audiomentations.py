"""Pipelines for audiomentations: sound and series as ``(channels, samples)``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from augury import __version__
from augury import augmentations as ours
from augury.adapters.code import Call, call, function, write_module
from augury.adapters.units import expected_units
from augury.adapters.walk import Dialect, Translation, shares


def copied(name: str, **options: float) -> list[Call]:
    """Return a step that applies a function which is copied into the code."""
    return [call("am.Lambda", transform=function(name, **options), p=1.0)]


def noise(a: ours.snr_noise) -> list[Call]:
    """Return noise at a signal-to-noise ratio, white or with a decay in decibels per octave."""
    if a.colour == 0:
        return [call("am.AddGaussianSNR", min_snr_db=a.low, max_snr_db=a.high, p=1.0)]
    decay = round(-10 * math.log10(2) * a.colour, 2)
    step = call("am.AddColorNoise", min_snr_db=a.low, max_snr_db=a.high)
    return [step.with_options(min_f_decay=decay, max_f_decay=decay, p=1.0)]


class Audiomentations(Dialect):
    """Sound and other series, float32."""

    name = "audiomentations"
    kinds = ("sound", "series")
    table: ClassVar = {
        ours.jitter: Translation(
            lambda a, shape: [
                call("am.AddGaussianNoise", min_amplitude=a.sd, max_amplitude=a.sd, p=1.0)
            ]
        ),
        ours.shift: Translation(lambda a, shape: copied("shift", fraction=a.fraction)),
        ours.scaling: Translation(lambda a, shape: copied("scaling", low=a.low, high=a.high)),
        ours.feature_dropout: Translation(lambda a, shape: copied("feature_dropout", rate=a.rate)),
        ours.gain: Translation(
            lambda a, shape: [
                call("am.Gain", min_gain_db=-a.decibels, max_gain_db=a.decibels, p=1.0)
            ]
        ),
        ours.sign_flip: Translation(lambda a, shape: [call("am.PolarityInversion", p=0.5)]),
        ours.time_flip: Translation(lambda a, shape: [call("am.Reverse", p=0.5)]),
        ours.time_mask: Translation(
            lambda a, shape: [
                call(
                    "am.TimeMask",
                    min_band_part=0.0,
                    max_band_part=a.fraction,
                    fade_duration=0.0,
                    p=1.0,
                )
            ]
        ),
        ours.clipping: Translation(lambda a, shape: copied("clipping", fraction=a.fraction)),
        ours.snr_noise: Translation(
            lambda a, shape: noise(a),
            because="it scales noise by its expected level, not by its own, and colours it by a "
            "spectrum of 128 points",
        ),
        ours.background: Translation(
            lambda a, shape: [
                call(
                    "am.AddBackgroundNoise",
                    sounds_path=a.name,
                    min_snr_db=a.low,
                    max_snr_db=a.high,
                    p=1.0,
                )
            ],
            because="it draws recordings evenly, augury by their length",
        ),
        ours.pitch: Translation(
            lambda a, shape: [
                call(
                    "am.PitchShift",
                    min_semitones=-a.semitones,
                    max_semitones=a.semitones,
                    method="librosa_phase_vocoder",
                    p=1.0,
                )
            ],
            because="its frames have 2,048 samples, augury's 512",
        ),
    }

    def augury(self, spec: str) -> Call:
        return call("am.Lambda", transform=function("augury_view", spec=spec), p=1.0)

    def together(self, steps: list[Call]) -> Call:
        return steps[0] if len(steps) == 1 else call("am.Compose", steps, p=1.0)

    def with_probability(self, steps: list[Call], p: float) -> Call:
        return call("am.Compose", steps, p=p)

    def choice(self, branches: list[Call], weights: Sequence[float], p: float) -> Call:
        return call("am.OneOf", branches, weights=shares(weights), p=p)

    def chain(self, branches: list[Call], rates: Sequence[float]) -> Call:
        return call("Chain", branches, rates=list(rates), p=1.0, needs=["Chain"])

    def write(self, augmentation: ours.Augmentation) -> str:
        return write_module(
            f"{augmentation}, written by augury {__version__} for audiomentations.\n"
            "augment(samples, sample_rate) takes and returns (samples,) or (channels, samples), "
            f"float32.{expected_units(augmentation)}",
            call("am.Compose", self.steps(augmentation), p=1.0),
            "series",
        )
