"""Blur, sharpness, noise and holes: maps sized in pixels or in parts of the image."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.rng import Rng, normal_from, spread_bits
from augury.augmentations.base import Family, Nodes, along, gauss_legendre, require
from augury.augmentations.colour import Blend


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

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, self.low, self.high)

    def _scaled(self, factor: float) -> blur:
        return blur(self.low * factor, self.high * factor)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        sigma = along(params, x)
        rows, columns = (_gaussian(side, sigma) for side in x.shape[-2:])
        return rows @ x @ columns.mT


def _gaussian(side: int, sigma: Tensor) -> Tensor:
    """Return the matrix that blurs one axis: side × side, for each sigma."""
    at = torch.arange(side, dtype=sigma.dtype, device=sigma.device)
    weight = (-0.5 * ((at - at.unsqueeze(1)) / sigma) ** 2).exp()
    return weight / weight.sum(-1, keepdim=True)


@dataclass(frozen=True, repr=False)
class sharpness(Blend):
    """Distance from a copy smoothed over 3 × 3 pixels times a factor uniform in 1 ± `strength`.

    The outermost pixels stay as they are; clipped.
    """

    strength: float = 0.5

    def _scaled(self, factor: float) -> sharpness:
        # the distance to the smoothed copy is a second derivative, in pixels squared
        return replace(self, strength=self.strength * factor**2)

    def plainer(self, x: Tensor) -> Tensor:
        if min(x.shape[-2:]) < 3:
            return x
        inner = x[..., 1:-1, 1:-1]
        mean = F.avg_pool2d(x.flatten(0, -4), 3, stride=1).view_as(inner)
        # weights of 5/13 in the middle and 1/13 around it leave 9/13 of the distance to the mean
        return x - F.pad((inner - mean) * (9 / 13), (1, 1, 1, 1))


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
    """A square with `fraction` of the side set to zero, centred anywhere in the image."""

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
class erasing(Family):
    """A random rectangle filled with noise, with area uniform in (0, `fraction`).

    Height over width is log-uniform in (0.3, 3.3); the noise is uniform over the 256 grey levels.
    """

    ladder = ((0.05,), (0.15,), (0.33,), (0.6,))
    kinds = frozenset({"image"})
    fraction: float = 0.33

    def __post_init__(self) -> None:
        require("erasing", 0 < self.fraction <= 1, "a fraction in (0, 1]", self.fraction)

    def draw(self, n: int, rng: Rng) -> tuple[Tensor, Tensor]:
        return rng.child(0).uniform(n, 4), rng.child(1).key(n)

    def rectangle(self, params: Tensor, height: int, width: int) -> tuple[Tensor, ...]:
        """Return top, bottom, left and right in whole pixels, bottom and right not included."""
        area = self.fraction * params[..., 0] * (height * width)
        ratio = (math.log(0.3) + math.log(3.3 / 0.3) * params[..., 1]).exp()
        high = (area * ratio).sqrt().round().clamp(0, height)
        wide = (area / ratio).sqrt().round().clamp(0, width)
        top = (params[..., 2] * (height - high + 1)).floor()
        left = (params[..., 3] * (width - wide + 1)).floor()
        return top, top + high, left, left + wide

    def apply(self, x: Tensor, params: tuple[Tensor, Tensor]) -> Tensor:
        where, keys = params
        channels, height, width = x.shape[-3:]
        top, bottom, left, right = (
            edge[..., None, None, None] for edge in self.rectangle(where, height, width)
        )
        row = torch.arange(height, device=x.device).unsqueeze(1)
        column = torch.arange(width, device=x.device)
        inside = (row >= top) & (row < bottom) & (column >= left) & (column < right)
        return torch.where(inside, grey_noise(keys, (channels, height, width)).to(x) / 255, x)


def grey_noise(keys: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return random grey levels from 0 to 255 for each key, eight from one word."""
    size = math.prod(shape)
    return spread_bits(keys, -(-size // 8)).view(torch.uint8)[..., :size].unflatten(-1, shape)
