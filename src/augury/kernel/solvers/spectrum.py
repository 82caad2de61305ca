"""A ridge regression for every λ at once, from eigenvalues: its solutions and their risk."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_GRID = 73
_SPAN = (-8.0, 1.0)  # powers of ten that λ may be of the largest eigenvalue
_LEAST_FREEDOM = 0.02  # of the examples must be left free, or the estimate of risk means nothing


@dataclass(frozen=True)
class Spectrum:
    """E[φφᵀ] by its eigenvalues, and what data and targets say along its eigenvectors.

    The exact objective is a ridge regression on the averaged features ψ, with the covariance of
    views added to the penalty: E‖y − wᵀψ‖² + wᵀ(E Cov + λ)w. Its risk follows as for any
    smoother, from its error on ψ and its effective number of parameters, N E[ψᵀ(E[φφᵀ] + λ)⁻¹ψ].

    Attributes
    ----------
    values
        s, ``(k,)``, float64.
    cross
        c, the eigenvectors' products with E[ψyᵀ]: ``(k, C)``, float64.
    mass
        m, so that tr E[ψψᵀ](E[φφᵀ] + λ)⁻¹ = Σ m/(s + λ): ``(k,)``. Equal to s where φ = ψ.
    power, count
        E‖y‖² and the number of examples N.
    sample
        Where φ is many views: some examples' ψ along the eigenvectors ``(m, k)``, and their y.
    penalty
        Where φ is ψ and rows p of a penalty: those, over √N, along the eigenvectors ``(m, k)``.
    """

    values: Tensor
    cross: Tensor
    mass: Tensor
    power: float
    count: int
    sample: tuple[Tensor, Tensor] | None = None
    penalty: Tensor | None = None

    def freedom(self, ridge: Tensor) -> Tensor:
        """Return the effective number of parameters for each λ."""
        return (self.mass / (self.values + ridge.unsqueeze(1))).sum(1)

    def error(self, ridge: Tensor) -> Tensor:
        """Return E‖y − wᵀψ‖² on the training data, for the solution at each λ."""
        s, r = self.values, ridge.unsqueeze(1)
        if self.sample is not None:
            features, y = self.sample
            each = [(features @ self.solve(float(at)) - y).square().sum(1).mean() for at in ridge]
            return torch.stack(each)
        fitted = self.cross.square().sum(1) * (s + 2 * r) / (s + r).square()
        error = self.power - fitted.sum(1)
        if self.penalty is not None:
            inner = self.penalty.mT @ self.penalty
            solutions = torch.stack([self.solve(float(at)) for at in ridge])
            error = error - (solutions * (inner @ solutions)).sum((1, 2))
        return error.clamp_min(0)

    def gcv(self, ridge: Tensor) -> Tensor:
        """Generalised cross-validation: error / (1 − freedom / N)², for each λ."""
        left = 1 - self.freedom(ridge) / self.count
        risk = self.error(ridge) / left.clamp_min(_LEAST_FREEDOM).square()
        return risk.where(left >= _LEAST_FREEDOM, torch.inf)

    def best_ridge(self) -> float:
        """Return the λ of least generalised cross-validation, of a fine grid."""
        top = float(self.values.max().clamp_min(1e-30))
        exponents = torch.linspace(*_SPAN, _GRID, dtype=torch.float64)
        grid = top * 10 ** exponents.to(self.values.device)
        return float(grid[self.gcv(grid).argmin()])

    def solve(self, ridge: float) -> Tensor:
        """Return the solution's coordinates along the eigenvectors: c / (s + λ), ``(k, C)``."""
        return self.cross / (self.values + ridge).unsqueeze(1)
