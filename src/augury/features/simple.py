"""The input itself as features."""

from __future__ import annotations

from torch import Tensor

from augury.features.base import FeatureMap


class Flatten(FeatureMap):
    """φ(x) = x as one vector: the linear kernel."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    def describe(self) -> str:
        return "pixels as they are"
