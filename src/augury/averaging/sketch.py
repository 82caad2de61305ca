"""An orbit known by its mean and a few directions that carry its covariance."""

from __future__ import annotations

import torch
from torch import Tensor

from augury.orbit import Orbit
from augury.rng import Rng


class Sketch(Orbit):
    """ψ(x) and directions v_j with weights w_j: Σ_j w_j v_j v_jᵀ is E[ΔΔᵀ], or has its mean.

    It takes the place of an orbit where only the mean and the second moment matter, as in the
    second-order term ½ E[ΔᵀHΔ].
    """

    def __init__(self, mean: Tensor, directions: Tensor, weights: Tensor) -> None:
        super().__init__(directions, weights)
        object.__setattr__(self, "_mean", mean)

    @property
    def mean(self) -> Tensor:
        return self.__dict__["_mean"]

    @property
    def deviations(self) -> Tensor:
        return self.features

    @classmethod
    def from_orbit(cls, orbit: Orbit, directions: int, rng: Rng) -> Sketch:
        """Join an orbit's deviations into a few, with random signs (Hutchinson, 1990).

        v = Σ_k √w_k ε_k Δ_k with ε_k = ±1, each as likely, has E[vᵀHv] = Σ_k w_k Δ_kᵀHΔ_k for
        any H: the second-order term without bias, for one Jacobian-vector product in place of n.
        """
        mean, features = orbit.mean, orbit.features
        n, b = features.shape[:2]
        signs = 1.0 - 2.0 * (rng.child(0).uniform(directions, n) < 0.5).to(mean.dtype)
        signs = signs * orbit.weights.to(mean).sqrt()  # (directions, b, n)
        deviations = orbit.deviations.reshape(n, b, -1)
        joined = torch.einsum("jbn,nbd->jbd", signs, deviations)
        weights = torch.full((directions,), 1 / directions, dtype=mean.dtype, device=mean.device)
        return cls(mean, joined.view(directions, *mean.shape), weights)
