"""Noise and gaps in vectors (rows of a table, in standard units) and in series."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from augury._base.rng import Rng, spread_bits, uniform_from
from augury.augmentations.base import Family, require
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
