"""Augmentations of vectors (rows of a table, in standard units) and of series."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.rng import Rng, spread_bits, uniform_from
from augury.augmentations.base import Family, Nodes, gauss_legendre, require
from augury.augmentations.pixels import add_noise


@dataclass(frozen=True, repr=False)
class jitter(Family):
    """Gaussian noise with standard deviation `sd` on each value, not clipped."""

    ladder = ((0.05,), (0.1,), (0.2,), (0.5,), (1,))
    sd: float = 0.1

    def __post_init__(self) -> None:
        require("jitter", self.sd > 0, "a standard deviation over 0", self.sd)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return add_noise(x, params, self.sd)


@dataclass(frozen=True, repr=False)
class feature_dropout(Family):
    """Each value set to zero (a table's column mean) with probability `rate`, independently."""

    ladder = ((0.05,), (0.1,), (0.2,), (0.4,), (0.6,))
    kinds = frozenset({"vector", "series"})
    linear = True
    rate: float = 0.1

    def __post_init__(self) -> None:
        require("feature_dropout", 0 < self.rate < 1, "a rate in (0, 1)", self.rate)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        shape = x.shape[2:]
        kept = uniform_from(spread_bits(params, shape.numel())) >= self.rate
        return x * kept.unflatten(-1, shape)


@dataclass(frozen=True, repr=False)
class shift(Family):
    """A series moved along its axis, uniform in ± `fraction` of its length; ends are held."""

    ladder = ((0.02,), (0.05,), (0.1,), (0.25,), (0.5,))
    kinds = frozenset({"series"})
    linear = True
    fraction: float = 0.1

    def __post_init__(self) -> None:
        require("shift", 0 < self.fraction <= 1, "a fraction in (0, 1]", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=-self.fraction, high=self.fraction)

    def nodes(self, n: int) -> Nodes:
        return gauss_legendre(n, -self.fraction, self.fraction)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        length = x.shape[-1]
        n, b = params.shape[0], x.shape[1]
        steps = params.to(x.dtype).expand(n, b).unsqueeze(-1) * length
        at = (torch.arange(length, device=x.device) - steps).clamp(0, length - 1)
        left = at.floor().to(torch.int64)
        share = (at - left).unsqueeze(2)
        x = x.expand(n, *x.shape[1:])
        index = left.unsqueeze(2).expand_as(x)
        nearer = x.gather(-1, index)
        further = x.gather(-1, (index + 1).clamp_max(length - 1))
        return nearer + share * (further - nearer)
