"""A ridge regression for every λ at once, from eigenvalues: its solutions and their risk."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_GRID = 65
_SPAN = 8.0  # λ from the largest eigenvalue down by so many powers of ten
_LEAST_FREEDOM = 0.02  # of the examples must be left free, or the estimate of risk means nothing


@dataclass(frozen=True)
class Spectrum:
    """E[φφᵀ] by its eigenvalues, and what the targets say along its eigenvectors.

    Attributes
    ----------
    values
        s, ``(k,)``, float64.
    cross
        c, the eigenvectors' products with E[ψyᵀ]: ``(k, C)``, float64.
    shares
        ``(k,)``: how many eigenvalues each stands for; 1 where all are known.
    power, count
        E‖y‖² and the number of examples N.
    """

    values: Tensor
    cross: Tensor
    shares: Tensor
    power: float
    count: int

    def freedom(self, ridge: Tensor) -> Tensor:
        """Give tr E[φφᵀ](E[φφᵀ] + λ)⁻¹ for each λ: the effective number of parameters."""
        s, r = self.values, ridge.unsqueeze(1)
        return (self.shares * s / (s + r)).sum(1)

    def error(self, ridge: Tensor) -> Tensor:
        """Give E‖y − wᵀφ‖² on the training data, for the solution at each λ."""
        s, r = self.values, ridge.unsqueeze(1)
        fitted = self.cross.square().sum(1) * (s + 2 * r) / (s + r).square()
        return (self.power - fitted.sum(1)).clamp_min(0)

    def gcv(self, ridge: Tensor) -> Tensor:
        """Generalised cross-validation: error / (1 − freedom / N)², for each λ."""
        left = 1 - self.freedom(ridge) / self.count
        risk = self.error(ridge) / left.clamp_min(_LEAST_FREEDOM).square()
        return risk.where(left >= _LEAST_FREEDOM, torch.inf)

    def best_ridge(self) -> float:
        """Give the λ of least generalised cross-validation, of a fine grid."""
        top = float(self.values.max().clamp_min(1e-30))
        exponents = torch.linspace(-_SPAN, 0.0, _GRID, dtype=torch.float64)
        grid = top * 10 ** exponents.to(self.values.device)
        return float(grid[self.gcv(grid).argmin()])

    def solve(self, ridge: float) -> Tensor:
        """Give the solution's coordinates along the eigenvectors: c / (s + λ), ``(k, C)``."""
        return self.cross / (self.values + ridge).unsqueeze(1)
