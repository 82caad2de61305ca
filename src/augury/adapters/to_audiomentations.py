"""Pipelines for audiomentations: series as ``(channels, samples)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from augury import __version__
from augury import augmentations as ours
from augury.adapters.code import Call, call, function, write_module
from augury.adapters.walk import Dialect, Translation, shares


def copied(name: str, **options: float) -> list[Call]:
    """Return a step that applies a function which is copied into the code."""
    return [call("am.Lambda", transform=function(name, **options), p=1.0)]


class Audiomentations(Dialect):
    """Sound and other series, float32."""

    name = "audiomentations"
    kind = "series"
    table: ClassVar = {
        ours.jitter: Translation(
            lambda a, shape: [
                call("am.AddGaussianNoise", min_amplitude=a.sd, max_amplitude=a.sd, p=1.0)
            ]
        ),
        ours.shift: Translation(lambda a, shape: copied("shift", fraction=a.fraction)),
        ours.scaling: Translation(lambda a, shape: copied("scaling", low=a.low, high=a.high)),
        ours.feature_dropout: Translation(lambda a, shape: copied("feature_dropout", rate=a.rate)),
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
            "float32.",
            call("am.Compose", self.steps(augmentation), p=1.0),
            "series",
        )
