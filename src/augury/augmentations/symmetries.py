"""Exact symmetries of the pixel grid: finite, linear, with an exact rule."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations.base import Family, Nodes


class Symmetries(Family):
    """A finite set of exact symmetries of the pixel grid, each as likely."""

    kinds = frozenset({"image"})
    linear = True

    size: int  # type: ignore[assignment]  # narrower than the base's: these are all finite

    @abstractmethod
    def maps(self, x: Tensor) -> list[Tensor]:
        """Return x under each symmetry."""

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.integers(n, self.size)

    def nodes(self, n: int) -> Nodes | None:
        if n < self.size:
            return None
        return Nodes(torch.arange(self.size).unsqueeze(1), even(self.size))

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        choice = params.reshape(*params.shape, *[1] * (x.dim() - 2))
        options = self.maps(x)
        out = options[0]
        for k, option in enumerate(options[1:], start=1):
            out = torch.where(choice == k, option, out)
        return out.expand(params.shape[0], *x.shape[1:])


def even(size: int) -> Tensor:
    """Return equal weights."""
    return torch.full((size,), 1 / size, dtype=torch.float64)


@dataclass(frozen=True, repr=False)
class identity(Symmetries):
    """No change, as in training without augmentation."""

    kinds = frozenset({"image", "series", "sound", "vector"})
    size = 1

    def maps(self, x: Tensor) -> list[Tensor]:
        return [x]


@dataclass(frozen=True, repr=False)
class horizontal_flip(Symmetries):
    """Left-right flip with probability ½."""

    size = 2

    def maps(self, x: Tensor) -> list[Tensor]:
        return [x, x.flip(-1)]


@dataclass(frozen=True, repr=False)
class vertical_flip(Symmetries):
    """Top-bottom flip with probability ½."""

    size = 2

    def maps(self, x: Tensor) -> list[Tensor]:
        return [x, x.flip(-2)]


@dataclass(frozen=True, repr=False)
class flips(Symmetries):
    """Each axis flipped with probability ½, independently."""

    size = 4

    def maps(self, x: Tensor) -> list[Tensor]:
        return [x, x.flip(-1), x.flip(-2), x.flip(-1, -2)]


@dataclass(frozen=True, repr=False)
class quarter_turns(Symmetries):
    """Rotation by 0, 90, 180 or 270 degrees with equal probability; square images only."""

    size = 4

    def check(self, shape: tuple[int, ...]) -> None:
        super().check(shape)
        if shape[-1] != shape[-2]:
            raise AuguryError(
                f"quarter_turns needs square images, but these are {shape[-2]} by {shape[-1]}; "
                "give square ones (a size) or use rotation(180)"
            )

    def maps(self, x: Tensor) -> list[Tensor]:
        return [x, *(x.rot90(k, (-2, -1)) for k in (1, 2, 3))]


@dataclass(frozen=True, repr=False)
class pixel_shifts(Symmetries):
    """Uniform choice of a one-pixel shift left, right, up, down or none, with wrap-around.

    The image wraps round, so a shift loses nothing and has an inverse in the family: its orbit
    is finite and its transition matrix is symmetric.
    """

    size = 5

    def maps(self, x: Tensor) -> list[Tensor]:
        return [x, *(x.roll(step, axis) for axis in (-1, -2) for step in (1, -1))]
