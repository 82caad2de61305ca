"""Augmentations of series: channels × time, along the time axis or in the values."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.rng import Rng, normal_from, spread_bits, uniform_from
from augury.augmentations.base import Family, Nodes, along, gauss_legendre, require
from augury.augmentations.symmetries import Symmetries

_SERIES = frozenset({"series"})
_WAVES = frozenset({"series", "sound"})
_KNOTS = 4
"""Random curves go through this many random values, as in Um et al. (2017)."""


class Retimed(Family):
    """A series read at other times: linear between its values, ends held."""

    kinds = _SERIES
    linear = True

    @abstractmethod
    def times(self, params: Tensor, at: Tensor) -> Tensor:
        """Return where to read, ``(n, b or 1, length)``, for the times `at` from 0 to 1."""

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        length = x.shape[-1]
        n = params.shape[0]
        time = torch.arange(length, dtype=x.dtype, device=x.device) / max(length - 1, 1)
        given = params if params.dtype == torch.int64 else params.to(x.dtype)
        at = self.times(given, time).clamp(0, 1) * (length - 1)
        left = at.floor().to(torch.int64)
        share = (at - left).unsqueeze(2)
        x = x.expand(n, *x.shape[1:])
        index = left.unsqueeze(2).expand_as(x)
        nearer = x.gather(-1, index)
        return nearer + share * (x.gather(-1, (index + 1).clamp_max(length - 1)) - nearer)


@dataclass(frozen=True, repr=False)
class shift(Retimed):
    """A time shift, uniform in ± `fraction` of the length; end values are repeated."""

    ladder = ((0.02,), (0.05,), (0.1,), (0.25,), (0.5,))
    kinds = _WAVES
    fraction: float = 0.1

    def __post_init__(self) -> None:
        require("shift", 0 < self.fraction <= 1, "a fraction in (0, 1]", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=-self.fraction, high=self.fraction)

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, -self.fraction, self.fraction)

    def times(self, params: Tensor, at: Tensor) -> Tensor:
        steps = max(len(at) - 1, 1)  # a fraction of the length, which is one more than the steps
        return at - params.unsqueeze(-1) * (len(at) / steps)


@dataclass(frozen=True, repr=False)
class time_warp(Retimed):
    """Time runs faster and slower, with speed exp(`strength` × a smooth Gaussian curve)."""

    ladder = ((0.1,), (0.2,), (0.4,), (0.8,))
    kinds = _WAVES
    strength: float = 0.2

    def __post_init__(self) -> None:
        require("time_warp", 0 < self.strength <= 2, "a strength in (0, 2]", self.strength)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)

    def times(self, params: Tensor, at: Tensor) -> Tensor:
        speed = (self.strength * curves(params, at)).exp()
        passed = speed.cumsum(-1) - speed[..., :1]
        return passed / passed[..., -1:].clamp_min(1e-12)


@dataclass(frozen=True, repr=False)
class window_slice(Retimed):
    """A window with length uniform in [`fraction`, 1], stretched to the full length."""

    ladder = ((0.95,), (0.9,), (0.8,), (0.6,), (0.4,))
    fraction: float = 0.9

    def __post_init__(self) -> None:
        require("window_slice", 0 < self.fraction < 1, "a fraction in (0, 1)", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, 2)

    def times(self, params: Tensor, at: Tensor) -> Tensor:
        wide = self.fraction + (1 - self.fraction) * params[..., :1]
        return params[..., 1:] * (1 - wide) + wide * at


@dataclass(frozen=True, repr=False)
class window_warp(Retimed):
    """A window of `fraction` of the length at half or double speed; total length unchanged."""

    ladder = ((0.05,), (0.1,), (0.2,), (0.4,))
    fraction: float = 0.1

    def __post_init__(self) -> None:
        require("window_warp", 0 < self.fraction < 1, "a fraction in (0, 1)", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, 2)

    def times(self, params: Tensor, at: Tensor) -> Tensor:
        start = params[..., :1] * (1 - self.fraction)
        factor = torch.where(params[..., 1:] < 0.5, 0.5, 2.0)
        window = factor * self.fraction  # what it takes of the new time
        time = at * (1 - self.fraction + window)
        inside = start + (time - start) / factor
        after = time - window + self.fraction
        return torch.where(time < start, time, torch.where(time < start + window, inside, after))


@dataclass(frozen=True, repr=False)
class crop(Retimed):
    """A window of `fraction` of the series; outside it, its end values are repeated."""

    ladder = ((0.95,), (0.9,), (0.8,), (0.6,), (0.4,))
    fraction: float = 0.9

    def __post_init__(self) -> None:
        require("crop", 0 < self.fraction < 1, "a fraction in (0, 1)", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n)

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, 0, 1)

    def times(self, params: Tensor, at: Tensor) -> Tensor:
        start = params.unsqueeze(-1) * (1 - self.fraction)
        return torch.maximum(start, torch.minimum(start + self.fraction, at))


def curves(keys: Tensor, at: Tensor) -> Tensor:
    """Return a smooth random curve for each key, ``(n, b, length)``: normal at `_KNOTS` times."""
    knots = normal_from(keys, _KNOTS).to(at.dtype)
    size = (1, len(at))
    smooth = F.interpolate(
        knots.reshape(-1, 1, 1, _KNOTS), size, mode="bicubic", align_corners=True
    )
    return smooth.reshape(*keys.shape, len(at))


@dataclass(frozen=True, repr=False)
class magnitude_warp(Family):
    """Values times a smooth random curve around 1, with standard deviation `sd`."""

    ladder = ((0.05,), (0.1,), (0.2,), (0.4,))
    kinds = _SERIES
    linear = True
    sd: float = 0.2

    def __post_init__(self) -> None:
        require("magnitude_warp", self.sd > 0, "a standard deviation over 0", self.sd)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return x * (1 + self.sd * curves(params, x[0, 0, 0])).unsqueeze(2)


@dataclass(frozen=True, repr=False)
class drift(Family):
    """The same smooth random curve added to all channels, with standard deviation `sd`."""

    ladder = ((0.1,), (0.2,), (0.5,), (1.0,))
    kinds = _SERIES
    sd: float = 0.2

    def __post_init__(self) -> None:
        require("drift", self.sd > 0, "a standard deviation over 0", self.sd)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return x + self.sd * curves(params, x[0, 0, 0]).unsqueeze(2)


@dataclass(frozen=True, repr=False)
class permutation(Family):
    """The series cut into `segments` equal pieces, in random order."""

    ladder = ((2,), (3,), (5,), (10,))
    kinds = _SERIES
    linear = True
    segments: int = 4

    def __post_init__(self) -> None:
        whole = 2 <= self.segments <= 64 and self.segments == int(self.segments)
        require("permutation", whole, "a whole number of segments from 2 to 64", self.segments)
        object.__setattr__(self, "segments", int(self.segments))

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, self.segments).argsort(-1)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        length, k = x.shape[-1], self.segments
        edges = torch.arange(k + 1, device=x.device) * length // k
        sizes = edges.diff()[params]  # of the pieces in their new order
        ends = sizes.cumsum(-1)
        time = torch.arange(length, device=x.device)
        piece = (time.unsqueeze(-1) >= ends.unsqueeze(-2)).sum(-1)  # (n, b or 1, length)
        moved = edges[:-1][params] - (ends - sizes)  # from a piece's new place to its old one
        source = (time + moved.gather(-1, piece)).unsqueeze(2)
        x = x.expand(len(params), *x.shape[1:])
        return x.gather(-1, source.expand_as(x))


@dataclass(frozen=True, repr=False)
class time_mask(Family):
    """A window set to zero, with length uniform in (0, `fraction`) of the series."""

    ladder = ((0.05,), (0.1,), (0.25,), (0.5,))
    kinds = _WAVES
    linear = True
    fraction: float = 0.1

    def __post_init__(self) -> None:
        require("time_mask", 0 < self.fraction <= 1, "a fraction in (0, 1]", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, 2)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return x.masked_fill(window(params, self.fraction, x.shape[-1]), 0)


def window(params: Tensor, fraction: float, size: int) -> Tensor:
    """Return which of `size` positions lie in a random window: ``(n, b or 1, 1, size)``."""
    wide = fraction * params[..., :1]
    start = params[..., 1:] * (1 - wide)
    centre = (torch.arange(size, device=params.device) + 0.5) / size
    return ((centre >= start) & (centre < start + wide)).unsqueeze(2)


@dataclass(frozen=True, repr=False)
class channel_dropout(Family):
    """Each channel set to zero with probability `rate`, but never all of them."""

    ladder = ((0.1,), (0.25,), (0.5,))
    kinds = _SERIES
    linear = True
    rate: float = 0.1

    def __post_init__(self) -> None:
        require("channel_dropout", 0 < self.rate < 1, "a rate in (0, 1)", self.rate)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        luck = uniform_from(spread_bits(params, x.shape[2]))
        kept = (luck >= self.rate) | (luck == luck.amax(-1, keepdim=True))
        return x * along(kept, x)


@dataclass(frozen=True, repr=False)
class time_flip(Symmetries):
    """The series reversed with probability ½."""

    kinds = _WAVES
    size = 2

    def maps(self, x: Tensor) -> list[Tensor]:
        return [x, x.flip(-1)]


@dataclass(frozen=True, repr=False)
class sign_flip(Symmetries):
    """Values multiplied by −1 with probability ½ (polarity inversion for sound)."""

    kinds = _WAVES
    size = 2

    def maps(self, x: Tensor) -> list[Tensor]:
        return [x, -x]
