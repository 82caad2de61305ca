"""The orbit of a batch: the features of its views, with weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_list, check_kind, check_tensors
from augury._base.rng import Rng
from augury._base.text import kind_of
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
        check_tensors(features=self.features, weights=self.weights)
        shape, weights = tuple(self.features.shape), tuple(self.weights.shape)
        if len(shape) < 2 or 0 in shape[:2] or not self.features.is_floating_point():
            raise AuguryError(
                "features must be floating-point numbers of shape (views, examples, features), "
                f"got shape {shape} of {self.features.dtype}"
            )
        if weights != shape[:1]:
            raise AuguryError(
                f"weights must be one for each of the {shape[0]} views, got shape {weights}"
            )
        if self.origin is not None:
            check_tensors(origin=self.origin)
            if tuple(self.origin.shape) != shape[1:]:
                raise AuguryError(
                    f"origin must have the shape {shape[1:]} of one view's features, got "
                    f"{tuple(self.origin.shape)}"
                )
        object.__setattr__(self, "weights", self.weights.to(self.features))

    @classmethod
    def of(
        cls, phi: FeatureMap, augmentation: Augmentation, x: Tensor, n_views: int, rng: Rng
    ) -> Orbit:
        """Make at most `n_views` views of each example and map them to features."""
        check_kind("augmentation", augmentation, Augmentation, "an augmentation; use augury.parse")
        if not callable(phi):
            raise AuguryError(f"phi must be a feature map, got {kind_of(phi)}")
        views, weights = augmentation.weighted_views(x, n_views, rng)
        return cls(phi(views.flatten(0, 1)).unflatten(0, views.shape[:2]), weights)

    @classmethod
    def joined(cls, parts: Sequence[Orbit]) -> Orbit:
        """Join the orbits of several batches, whose views have the same weights, in their order."""
        for part in as_list("parts", parts):
            check_kind("parts", part, Orbit, "orbits")
        if not len(parts):
            raise AuguryError("parts must be one orbit or more, got none")
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
