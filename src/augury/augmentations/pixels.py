"""Maps that change pixel values in place, on pixels in [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from augury._base.rng import Rng, normal_from
from augury.augmentations.base import Family, Nodes, along, gauss_legendre, require
from augury.augmentations.warps import even


@dataclass(frozen=True, repr=False)
class blur(Family):
    """Gaussian blur, sigma in pixels uniform in [`low`, `high`]; renormalised at the border."""

    ladder = ((0.05, 0.5), (0.05, 1.0), (0.05, 1.5), (0.05, 2.5))
    kinds = frozenset({"image"})
    linear = True
    low: float = 0.5
    high: float = 2.0

    def __post_init__(self) -> None:
        require("blur", 0 < self.low < self.high, "0 < low < high", self.low, self.high)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=self.low, high=self.high)

    def nodes(self, n: int) -> Nodes:
        return gauss_legendre(n, self.low, self.high)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        sigma = along(params, x)
        rows, columns = (_gaussian(side, sigma) for side in x.shape[-2:])
        return rows @ x @ columns.mT


def _gaussian(side: int, sigma: Tensor) -> Tensor:
    """Give the matrix that blurs one axis: side × side, for each sigma."""
    at = torch.arange(side, dtype=sigma.dtype, device=sigma.device)
    weight = (-0.5 * ((at - at.unsqueeze(1)) / sigma) ** 2).exp()
    return weight / weight.sum(-1, keepdim=True)


@dataclass(frozen=True, repr=False)
class brightness(Family):
    """Pixels times a factor uniform in 1 ± `strength`, clipped; linear with ``clip=False``."""

    ladder = ((0.1,), (0.25,), (0.5,), (0.9,))
    kinds = frozenset({"image"})
    strength: float = 0.25
    clip: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        require("brightness", 0 < self.strength <= 1, "a strength in (0, 1]", self.strength)
        object.__setattr__(self, "linear", not self.clip)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=1 - self.strength, high=1 + self.strength)

    def nodes(self, n: int) -> Nodes:
        return gauss_legendre(n, 1 - self.strength, 1 + self.strength)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        out = x * along(params, x)
        return out.clamp(0, 1) if self.clip else out


@dataclass(frozen=True, repr=False)
class contrast(Family):
    """Distance from the image's mean times a factor uniform in 1 ± `strength`, clipped."""

    ladder = ((0.1,), (0.25,), (0.5,), (0.9,))
    kinds = frozenset({"image"})
    strength: float = 0.35
    clip: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        require("contrast", 0 < self.strength <= 1, "a strength in (0, 1]", self.strength)
        object.__setattr__(self, "linear", not self.clip)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=1 - self.strength, high=1 + self.strength)

    def nodes(self, n: int) -> Nodes:
        return gauss_legendre(n, 1 - self.strength, 1 + self.strength)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        mean = x.mean(dim=(-3, -2, -1), keepdim=True)
        out = mean + (x - mean) * along(params, x)
        return out.clamp(0, 1) if self.clip else out


@dataclass(frozen=True, repr=False)
class noise(Family):
    """Gaussian noise with standard deviation `sd` on each pixel, clipped."""

    ladder = ((0.02,), (0.05,), (0.1,), (0.2,), (0.4,))
    kinds = frozenset({"image"})
    sd: float = 0.05

    def __post_init__(self) -> None:
        require("noise", self.sd > 0, "a standard deviation over 0", self.sd)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return add_noise(x, params, self.sd).clamp(0, 1)


def add_noise(x: Tensor, keys: Tensor, sd: float) -> Tensor:
    """Add normal noise made from the keys ``(n, b)`` to ``(n or 1, b, *shape)``."""
    shape = x.shape[2:]
    return x + sd * normal_from(keys, shape.numel()).unflatten(-1, shape).to(x.dtype)


@dataclass(frozen=True, repr=False)
class cutout(Family):
    """A zero square with `fraction` of the side, centred anywhere in the image."""

    ladder = ((0.1,), (0.25,), (0.4,), (0.6,))
    kinds = frozenset({"image"})
    linear = True
    fraction: float = 0.25

    def __post_init__(self) -> None:
        require("cutout", 0 < self.fraction <= 1, "a fraction in (0, 1]", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, 2)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        half = self.fraction / 2
        inside_y = (_centres(height, x) - params[..., 0, None]).abs() < half
        inside_x = (_centres(width, x) - params[..., 1, None]).abs() < half
        hole = inside_y[..., None, :, None] & inside_x[..., None, None, :]
        return x.masked_fill(hole, 0.0)


def _centres(side: int, x: Tensor) -> Tensor:
    return (torch.arange(side, device=x.device) + 0.5) / side


@dataclass(frozen=True, repr=False)
class invert(Family):
    """1 − x with probability ½."""

    kinds = frozenset({"image"})
    size = 2

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.integers(n, 2)

    def nodes(self, n: int) -> Nodes | None:
        return Nodes(torch.arange(2).unsqueeze(1), even(2)) if n >= 2 else None

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        flip = along(params, x)
        return flip + x * (1 - 2 * flip)


@dataclass(frozen=True, repr=False)
class solarize(Family):
    """Values over a threshold uniform in [`threshold`, 1] are inverted."""

    ladder = ((0.9,), (0.7,), (0.5,), (0.3,))
    kinds = frozenset({"image"})
    threshold: float = 0.3

    def __post_init__(self) -> None:
        require("solarize", 0 <= self.threshold < 1, "a threshold in [0, 1)", self.threshold)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=self.threshold, high=1.0)

    def nodes(self, n: int) -> Nodes:
        return gauss_legendre(n, self.threshold, 1.0)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return torch.where(x > along(params, x), 1 - x, x)


@dataclass(frozen=True, repr=False)
class posterize(Family):
    """Values rounded down to a number of bits drawn evenly from `bits` to 8."""

    ladder = ((6,), (4,), (2,), (1,))
    kinds = frozenset({"image"})
    bits: int = 4

    def __post_init__(self) -> None:
        whole = 1 <= self.bits <= 8 and self.bits == int(self.bits)
        require("posterize", whole, "a whole number of bits from 1 to 8", self.bits)
        object.__setattr__(self, "bits", int(self.bits))
        object.__setattr__(self, "size", 9 - self.bits)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return self.bits + rng.integers(n, 9 - self.bits)

    def nodes(self, n: int) -> Nodes | None:
        levels = torch.arange(self.bits, 9).unsqueeze(1)
        return Nodes(levels, even(len(levels))) if n >= len(levels) else None

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        step = 2.0 ** (8 - along(params, x))
        return (x * 255 / step).floor() * step / 255
