"""An orbit reduced to its mean and a few directions that carry its covariance."""

from __future__ import annotations

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.features.orbit import Orbit


class Sketch(Orbit):
    """ψ(x) and directions v_j with weights w_j: Σ_j w_j v_j v_jᵀ equals E[ΔΔᵀ], or has its mean.

    It replaces an orbit where only the mean and the second moment matter, as in the second-order
    term ½ E[ΔᵀHΔ].
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
    def combined(cls, orbit: Orbit, directions: int, rng: Rng) -> Sketch:
        """Combine an orbit's deviations into a few, with random signs (Hutchinson, 1990).

        v = Σ_k √w_k ε_k Δ_k with ε_k = ±1, equally likely, has E[vᵀHv] = Σ_k w_k Δ_kᵀHΔ_k for
        any H: the second-order term without bias, for one Jacobian-vector product instead of n.
        """
        mean, deviations = orbit.mean, orbit.deviations
        n, rows = deviations.shape[:2]
        groups = rows // len(rng.keys)  # of views, each a row of its own
        draws = rng.child(0).uniform(directions, groups, n).transpose(1, 2).flatten(1, 2)
        signs = (1.0 - 2.0 * (draws < 0.5).to(mean)) * orbit.weights.to(mean).sqrt()
        joined = torch.einsum("jbn,nbd->jbd", signs, deviations.reshape(n, rows, -1))
        weights = torch.full((directions,), 1 / directions, dtype=mean.dtype, device=mean.device)
        return cls(mean, joined.view(directions, *mean.shape), weights)


def grouped(orbit: Orbit, groups: int, *, spread: bool) -> tuple[Orbit, Tensor]:
    """Split views into groups of neighbours, each an example of its own with its own average.

    Parameters
    ----------
    orbit
        Of n views of b examples, n a multiple of `groups`.
    groups
        Number of groups, with n / groups views in each.
    spread
        Whether the deviations are needed.

    Returns
    -------
    orbit, shares
        Of ``groups · b`` examples, group after group; and each group's weight ``(groups,)``.
    """
    features = orbit.features.unflatten(0, (groups, -1))
    weights = orbit.weights.view(groups, -1)
    shares = weights.sum(1)
    weights = weights / shares.unsqueeze(1)
    mean = torch.einsum("gk,gkbd->gbd", weights, features.flatten(3)).view(
        groups, *features.shape[2:]
    )
    rows, one = mean.flatten(0, 1), torch.ones(1, dtype=mean.dtype, device=mean.device)
    if not spread:
        return Orbit(rows.unsqueeze(0), one), shares
    scale = weights.sqrt().reshape(*weights.shape, *[1] * (features.dim() - 2))
    deviations = (features - mean.unsqueeze(1)) * scale
    return Sketch(
        rows, deviations.transpose(0, 1).flatten(1, 2), one.expand(len(features[0]))
    ), shares
