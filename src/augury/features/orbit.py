"""The orbit of a batch: the features of its views, with weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations.base import Augmentation
from augury.features.base import FeatureMap


@dataclass(frozen=True)
class Orbit:
    """{φ(t) : t ~ T(x)} for each example of a batch.

    Attributes
    ----------
    features
        ``(n, b, d)``: n views of b examples (for a layer of a network, d may be several
        dimensions).
    weights
        ``(n,)``, summing to one; of any floating-point type.
    origin
        ``(b, d)``: φ(x), the features of the unaugmented examples, if they are needed.
    """

    features: Tensor
    weights: Tensor
    origin: Tensor | None = None

    def __post_init__(self) -> None:
        """Bring the weights, which rules give in float64, to the type of the features."""
        object.__setattr__(self, "weights", self.weights.to(self.features))

    @classmethod
    def of(
        cls, phi: FeatureMap, augmentation: Augmentation, x: Tensor, n_views: int, rng: Rng
    ) -> Orbit:
        """Make at most `n_views` views of each example and map them to features."""
        views, weights = augmentation.weighted_views(x, n_views, rng)
        return cls(phi(views.flatten(0, 1)).unflatten(0, views.shape[:2]), weights)

    @classmethod
    def joined(cls, parts: Sequence[Orbit]) -> Orbit:
        """Join the orbits of several batches, whose views have the same weights, in their order."""
        if len(parts) == 1:
            return parts[0]
        return cls(torch.cat([part.features for part in parts], dim=1), parts[0].weights)

    @property
    def mean(self) -> Tensor:
        """ψ(x) = E φ(t): ``(b, d)`` (Section 4.1 of the paper)."""
        if len(self.weights) == 1:
            return self.features[0]
        return (self.weights @ self.features.flatten(1)).view(self.features.shape[1:])

    @property
    def deviations(self) -> Tensor:
        """Δ = φ(t) − ψ(x): ``(n, b, d)``."""
        return self.features - self.mean

    @property
    def spread(self) -> Tensor:
        """E‖Δ‖², the trace of the covariance: ``(b,)``."""
        return self.weights @ self.deviations.square().flatten(2).sum(-1)
