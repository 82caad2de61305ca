"""Kernels by their spectra: values from distances, and how to draw their frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import is_one_of
from augury._base.text import shown

KERNELS = ("gaussian", "laplacian", "matern")
NUS = (0.5, 1.5, 2.5)
SAMPLINGS = ("iid", "orthogonal", "hadamard")

_MANY = 1 << 14  # numbers that are worth more than one core; as many pairs of 8 are made at once

Sampling = Literal["iid", "orthogonal", "hadamard"]


@dataclass(frozen=True)
class ShiftInvariantKernel:
    """K(x, x') = k(x − x'), with the law of its frequencies (Bochner's theorem).

    ``"gaussian"`` is exp(−γ‖δ‖²), its frequencies N(0, 2γI); ``"laplacian"`` is exp(−γ‖δ‖₁), its
    frequencies Cauchy of scale γ in each coordinate; ``"matern"`` is Matérn's kernel of length
    1/√(2γ) and smoothness ν in ½, 3/2, 5/2, its frequencies √(2γ) times Student's t with 2ν
    degrees of freedom; for ν → ∞ it is the Gaussian.
    """

    name: str = "gaussian"
    nu: float = 1.5

    def __post_init__(self) -> None:
        if not is_one_of(self.name, KERNELS):
            raise AuguryError(f"kernel must be one of {', '.join(KERNELS)}, not {shown(self.name)}")
        if not is_one_of(self.nu, NUS):
            raise AuguryError(f"nu must be 0.5, 1.5 or 2.5, not {shown(self.nu)}")

    @property
    def title(self) -> str:
        """Its name in a sentence."""
        return f"Matérn-{self.nu:g}" if self.name == "matern" else self.name.capitalize()

    @property
    def norm(self) -> int:
        """The norm that its distances are in: 1 or 2."""
        return 1 if self.name == "laplacian" else 2

    def values(self, distances: Tensor, gamma: float) -> Tensor:
        """Return the kernel at distances in its norm."""
        if self.name == "gaussian":
            return (-gamma * distances.square()).exp()
        if self.name == "laplacian":
            return (-gamma * distances).exp()
        r = distances * math.sqrt(2 * self.nu * 2 * gamma)
        factor = {0.5: torch.ones_like(r), 1.5: 1 + r, 2.5: 1 + r + r.square() / 3}[self.nu]
        return factor * (-r).exp()

    def matrix(self, x: Tensor, other: Tensor, gamma: float) -> Tensor:
        """Return K(x_i, x'_j) of two samples ``(N, d)``, ``(M, d)``: the slow, exact kernel."""
        return self.values(torch.cdist(x, other, p=float(self.norm)), gamma)

    def lengths(self, count: int, rng: np.random.Generator) -> Tensor | None:
        """Return what each Gaussian frequency is multiplied by; None if nothing."""
        if self.name != "matern":
            return None
        degrees = 2 * self.nu
        return torch.from_numpy(np.sqrt(degrees / rng.chisquare(degrees, count)))


def draw_dense(
    kernel: ShiftInvariantKernel, sampling: str, count: int, d: int, seed: int
) -> Tensor:
    """Draw frequencies for γ = ½ (γ = 1 for the Laplacian) as a matrix ``(count, d)``, float64.

    Orthogonal ones come in blocks of d or fewer: directions at right angles, each with the length
    of a Gaussian vector (Yu and others, 2016); O(count · d · min(count, d)).
    """
    generator = torch.Generator().manual_seed(seed)
    rng = np.random.default_rng(seed)
    if kernel.name == "laplacian":
        uniform = torch.rand((count, d), generator=generator, dtype=torch.float64)
        return (math.pi * (uniform - 0.5)).tan()
    if sampling == "orthogonal":
        omega = torch.empty((count, d), dtype=torch.float64)
        for rows in omega.split(d):
            rows.copy_(torch.linalg.qr(standard_normal(d, len(rows), generator))[0].mT)
        omega *= torch.from_numpy(np.sqrt(rng.chisquare(d, count))).unsqueeze(1)
    else:
        omega = standard_normal(count, d, generator)
    stretch = kernel.lengths(count, rng)
    return omega if stretch is None else omega.mul_(stretch.unsqueeze(1))


def bytes_to_draw(sampling: str, count: int, d: int, item: int) -> int:
    """Return the peak of bytes that drawing frequencies and rounding them to `item` bytes takes."""
    if sampling == "hadamard":
        return 64 * (count + d)
    block = 2 * 8 * min(count, d) * d if sampling == "orthogonal" else 0
    return max(8 + item, 3 * item) * count * d + block


def standard_normal(rows: int, d: int, generator: torch.Generator) -> Tensor:
    """Return the numbers of `torch.randn` in float64, sooner: it works on one core.

    By Box and Muller's method: of 16 uniform numbers, eight are radii and eight angles.
    """
    if rows * d < _MANY or rows * d % 16:
        return torch.randn((rows, d), generator=generator, dtype=torch.float64)
    numbers = torch.rand((rows * d // 16, 2, 8), generator=generator, dtype=torch.float64)
    for pairs in numbers.split(_MANY):
        radius = (1 - pairs[:, 0]).log_().mul_(-2).sqrt_()
        angle = pairs[:, 1] * (2 * math.pi)
        torch.mul(radius, angle.cos(), out=pairs[:, 0])
        torch.mul(radius, angle.sin_(), out=pairs[:, 1])
    return numbers.view(rows, d)


def check_sampling(kernel: ShiftInvariantKernel, sampling: str) -> None:
    """Raise one clear line unless frequencies of the kernel can be drawn so."""
    if not is_one_of(sampling, SAMPLINGS):
        raise AuguryError(f"sampling must be one of {', '.join(SAMPLINGS)}, not {shown(sampling)}")
    if sampling != "iid" and kernel.norm != 2:
        raise AuguryError(
            f"{sampling} frequencies need a kernel of the Euclidean distance, which the "
            f"{kernel.name} kernel is not; use iid sampling, or the gaussian or matern kernel"
        )
