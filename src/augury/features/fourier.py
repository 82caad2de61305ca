"""Random Fourier features (Rahimi and Recht, 2007) of the Gaussian kernel."""

from __future__ import annotations

import math
from typing import Literal, Self

import torch
from torch import Tensor

from augury.errors import AuguryError
from augury.features.base import FeatureMap
from augury.kernels import kernel_alignment

_SAMPLE = 1000


class FourierFeatures(FeatureMap):
    """φ(x) = √(2/d) [cos Ωx, sin Ωx], so that φ(x)ᵀφ(x') ≈ exp(−γ‖x − x'‖²).

    Parameters
    ----------
    d
        The number of features, even: d/2 frequencies, a cosine and a sine of each.
    gamma
        The kernel's γ, or how to choose it from data: ``"alignment"`` tries a grid round the
        median heuristic and takes the γ whose kernel agrees best with the labels (Appendix E.1 of
        the paper); ``"median"`` takes one over the median squared distance.
    seed
        Of the frequencies, Ω with entries N(0, 2γ).
    """

    def __init__(
        self,
        d: int = 1024,
        *,
        gamma: float | Literal["alignment", "median"] = "alignment",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if d < 2 or d % 2:
            raise AuguryError(f"the number of Fourier features must be even and over 0, not {d}")
        if not isinstance(gamma, str) and not (math.isfinite(gamma) and gamma > 0):
            raise AuguryError(f"gamma must be over 0, 'alignment' or 'median', not {gamma}")
        self.d, self.gamma, self.seed = d, gamma, seed
        self.gamma_: float | None = None
        self.register_buffer("frequencies", None)

    def fit(self, x: Tensor, y: Tensor | None = None) -> Self:
        """Choose γ and draw the frequencies; cost O(sample² · pixels) for the choice."""
        flat = x[:_SAMPLE].flatten(1)
        if isinstance(self.gamma, str):
            self.gamma_ = _choose(self.gamma, flat, None if y is None else y[:_SAMPLE])
        else:
            self.gamma_ = float(self.gamma)
        generator = torch.Generator().manual_seed(self.seed)
        shape = (self.d // 2, flat.shape[1])
        omega = torch.randn(shape, generator=generator, dtype=torch.float64)
        self.frequencies = (omega * math.sqrt(2 * self.gamma_)).to(x)
        return self

    def forward(self, x: Tensor) -> Tensor:
        if self.frequencies is None:
            raise AuguryError("these Fourier features have no frequencies yet: call fit first")
        phase = x.flatten(1) @ self.frequencies.mT
        out = torch.empty(len(x), self.d, dtype=phase.dtype, device=phase.device)
        scale = math.sqrt(2 / self.d)
        half = self.d // 2
        torch.mul(phase.cos(), scale, out=out[:, :half])
        torch.mul(phase.sin_(), scale, out=out[:, half:])
        return out

    def describe(self) -> str:
        gamma = "" if self.gamma_ is None else f", gamma {self.gamma_:.3g}"
        return f"{self.d} Fourier features of the Gaussian kernel{gamma}"


def _choose(how: str, x: Tensor, y: Tensor | None) -> float:
    distances = torch.cdist(x, x).square()
    median = float(distances[distances > 0].median()) if bool((distances > 0).any()) else 1.0
    if how == "median" or y is None:
        return 1 / median
    grid = [2.0**k / median for k in range(-6, 7)]
    target = (y @ y.mT).to(distances)
    scores = [float(kernel_alignment((-gamma * distances).exp(), target)) for gamma in grid]
    return grid[max(range(len(grid)), key=scores.__getitem__)]
