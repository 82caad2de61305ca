"""Maps of colours and grey levels, each pixel on its own or by its channel's histogram.

Pixels lie in [0, 1]. Saturation, hue and grayscale leave images without three channels unchanged.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations.base import Family, Nodes, along, even_spacing, gauss_legendre, require
from augury.augmentations.routing import route
from augury.augmentations.symmetries import even, identity


@dataclass(frozen=True, repr=False)
class Blend(Family):
    """A plainer image d(x), moved away from or towards: d + f (x − d), f uniform in 1 ± `strength`.

    Clipped to [0, 1]; with ``clip=False`` it is linear, since d is.
    """

    ladder = ((0.1,), (0.25,), (0.5,), (0.9,))
    kinds = frozenset({"image"})
    strength: float = 0.25
    clip: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        name = type(self).__name__
        require(name, 0 < self.strength <= 1, "a strength in (0, 1]", self.strength)
        object.__setattr__(self, "linear", not self.clip)

    @abstractmethod
    def plainer(self, x: Tensor) -> Tensor:
        """Return d(x): what a factor of zero leaves of the images."""

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=1 - self.strength, high=1 + self.strength)

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, 1 - self.strength, 1 + self.strength)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        out = torch.lerp(self.plainer(x), x, along(params, x))
        return out.clamp_(0, 1) if self.clip else out


@dataclass(frozen=True, repr=False)
class brightness(Blend):
    """Pixels times a factor uniform in 1 ± `strength`, clipped; linear with ``clip=False``."""

    def plainer(self, x: Tensor) -> Tensor:
        return x.new_zeros(())


@dataclass(frozen=True, repr=False)
class contrast(Blend):
    """Contrast about the image's mean scaled by a factor uniform in 1 ± `strength`, clipped."""

    strength: float = 0.35

    def plainer(self, x: Tensor) -> Tensor:
        return x.mean(dim=(-3, -2, -1), keepdim=True)


@dataclass(frozen=True, repr=False)
class saturation(Blend):
    """Saturation scaled by a factor uniform in 1 ± `strength`, clipped."""

    strength: float = 0.5

    def plainer(self, x: Tensor) -> Tensor:
        return luma(x)


def luma(x: Tensor) -> Tensor:
    """Return the brightness of each pixel (ITU-R 601), or the image itself if it has no colours."""
    if x.shape[-3] != 3:
        return x
    red, green, blue = x.split(1, dim=-3)
    return 0.299 * red + 0.587 * green + 0.114 * blue


@dataclass(frozen=True, repr=False)
class grayscale(Family):
    """Colours removed with probability `probability`."""

    ladder = ((0.1,), (0.25,), (0.5,), (1.0,))
    strongest = 1.0
    kinds = frozenset({"image"})
    linear = True
    size = 2
    probability: float = 0.5

    def __post_init__(self) -> None:
        require_probability(self, self.probability)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return (rng.uniform(n) < self.probability).to(torch.int64)

    def nodes(self, n: int) -> Nodes | None:
        return two_nodes(self.probability) if n >= 2 else None

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return torch.lerp(x, luma(x).expand_as(x), along(params, x))


def require_probability(family: Family, probability: float) -> None:
    """Raise one clear line if a family's probability is not in (0, 1]."""
    name = type(family).__name__
    require(name, 0 < probability <= 1, "a probability in (0, 1]", probability)


def two_nodes(probability: float) -> Nodes:
    """Return the exact rule for a map that is applied with a probability: not at all, or once."""
    weights = torch.tensor([1 - probability, probability], dtype=torch.float64)
    return Nodes(torch.arange(2).unsqueeze(1), weights)


@dataclass(frozen=True, repr=False)
class hue(Family):
    """Rotation of the colour circle by an angle uniform in ± `fraction` of a turn."""

    ladder = ((0.02,), (0.05,), (0.1,), (0.25,), (0.5,))
    strongest = 0.5
    kinds = frozenset({"image"})
    fraction: float = 0.1

    def __post_init__(self) -> None:
        require("hue", 0 < self.fraction <= 0.5, "a fraction in (0, 0.5]", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=-self.fraction, high=self.fraction)

    def nodes(self, n: int) -> Nodes | None:
        if self.fraction == 0.5:  # a whole turn is periodic: even spacing is the best rule
            return even_spacing(n, -0.5, 0.5)
        return gauss_legendre(n, -self.fraction, self.fraction)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        if x.shape[-3] != 3:
            return x.expand(params.shape[0], *x.shape[1:])
        value, chroma, sixths = _hue(x)
        sixths = sixths + 6 * along(params, x)
        # each channel falls from the value by the chroma, the further its own hue is away
        offsets = torch.tensor([5.0, 3.0, 1.0], dtype=x.dtype, device=x.device).reshape(3, 1, 1)
        away = (sixths + offsets).remainder(6)
        return value - chroma * torch.minimum(away, 4 - away).clamp(0, 1)


def _hue(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return value, chroma and hue (in sixths of a turn) of RGB images, one channel each."""
    red, green, blue = x.split(1, dim=-3)
    low, value = x.aminmax(dim=-3, keepdim=True)
    chroma = value - low
    divisor = torch.where(chroma == 0, 1, chroma)
    of_blue = torch.where(value == green, 2 + (blue - red) / divisor, 4 + (red - green) / divisor)
    return value, chroma, torch.where(value == red, (green - blue) / divisor, of_blue)


@dataclass(frozen=True, repr=False)
class gamma(Family):
    """Pixels raised to a power uniform in 1 ± `strength`."""

    ladder = ((0.1,), (0.25,), (0.5,), (0.9,))
    kinds = frozenset({"image"})
    strength: float = 0.25

    def __post_init__(self) -> None:
        require("gamma", 0 < self.strength < 1, "a strength in (0, 1)", self.strength)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=1 - self.strength, high=1 + self.strength)

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, 1 - self.strength, 1 + self.strength)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return x.clamp_min(0).pow(along(params, x))


@dataclass(frozen=True, repr=False)
class invert(Family):
    """1 − x with probability ½."""

    kinds = frozenset({"image"})
    size = 2

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.integers(n, 2)

    def nodes(self, n: int) -> Nodes | None:
        return two_nodes(0.5) if n >= 2 else None

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        flip = along(params, x)
        return flip + x * (1 - 2 * flip)


@dataclass(frozen=True, repr=False)
class solarize(Family):
    """Values above a threshold uniform in [`threshold`, 1] are inverted."""

    ladder = ((0.9,), (0.7,), (0.5,), (0.3,))
    kinds = frozenset({"image"})
    threshold: float = 0.3

    def __post_init__(self) -> None:
        require("solarize", 0 <= self.threshold < 1, "a threshold in [0, 1)", self.threshold)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=self.threshold, high=1.0)

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, self.threshold, 1.0)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return torch.where(x > along(params, x), 1 - x, x)


@dataclass(frozen=True, repr=False)
class posterize(Family):
    """Values rounded down to a number of bits uniform in `bits` to 8."""

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


@dataclass(frozen=True, repr=False)
class Sometimes(Family):
    """A map that is applied with probability `probability`, and only to the images that drew it."""

    ladder = ((0.1,), (0.25,), (0.5,), (1.0,))
    strongest = 1.0
    kinds = frozenset({"image"})
    size = 2
    probability: float = 0.5

    def __post_init__(self) -> None:
        require_probability(self, self.probability)

    @abstractmethod
    def changed(self, x: Tensor) -> Tensor:
        """Return the images with the map applied."""

    def draw(self, n: int, rng: Rng) -> Tensor:
        return (rng.uniform(n) < self.probability).to(torch.int64)

    def nodes(self, n: int) -> Nodes | None:
        return two_nodes(self.probability) if n >= 2 else None

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return route(x, (identity(), Always(self)), [(params, params, params)])


class Always(Family):
    """The map of a `Sometimes`, whatever was drawn."""

    def __init__(self, family: Sometimes) -> None:
        self.family = family

    def draw(self, n: int, rng: Rng) -> Tensor:
        return self.family.draw(n, rng)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return self.family.changed(x)


@dataclass(frozen=True, repr=False)
class autocontrast(Sometimes):
    """Each channel stretched to the full range [0, 1], with probability `probability`."""

    def changed(self, x: Tensor) -> Tensor:
        low, high = x.amin(dim=(-2, -1), keepdim=True), x.amax(dim=(-2, -1), keepdim=True)
        flat = low == high  # a channel of one value stays as it is
        return (x - low.where(~flat, 0)) / (high - low).where(~flat, 1)


@dataclass(frozen=True, repr=False)
class equalize(Sometimes):
    """Histogram of each channel (256 levels) equalised, with probability `probability`."""

    def changed(self, x: Tensor) -> Tensor:
        """Look each level up in the table that Pillow's `ImageOps.equalize` builds."""
        level = (x * 255.999).to(torch.int64).clamp_(0, 255).flatten(-2)
        count = torch.zeros(*level.shape[:-1], 256, dtype=torch.int32, device=x.device)
        count.scatter_add_(-1, level, count.new_ones(()).expand_as(level))
        below = count.cumsum(-1)
        fullest = count.gather(-1, below.argmax(-1, keepdim=True))  # pixels at the highest level
        step = (level.shape[-1] - fullest) // 255
        table = ((below - count + step // 2) // step.clamp_min(1)).clamp_(0, 255)
        even_levels = torch.where(step == 0, level, table.gather(-1, level))
        return (even_levels.to(x.dtype) / 255).view_as(x)
