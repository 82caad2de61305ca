"""TrivialAugment and RandAugment: random operations with torchvision's strengths, stacked.

Each view of each image draws its own operations. Images that drew the same kind of operation are
transformed together. Warps are bilinear where torchvision's default is the nearest pixel.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import lru_cache

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations.base import Augmentation, Family, Params, require
from augury.augmentations.colour import (
    Always,
    Blend,
    autocontrast,
    brightness,
    equalize,
    luma,
    posterize,
    saturation,
    solarize,
)
from augury.augmentations.geometry import Affine
from augury.augmentations.pixels import sharpness
from augury.augmentations.routing import route
from augury.augmentations.symmetries import identity

OPERATIONS = (
    "Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color",
    "Contrast", "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize",
)  # fmt: skip
"""torchvision's names and order, the same for both recipes."""

BINS = 31
"""The number of strengths of an operation, from none to its strongest."""


@dataclass(frozen=True, repr=False)
class Recipe(Family):
    """`operations` operations, one after the other, each drawn evenly from `OPERATIONS`."""

    kinds = frozenset({"image"})
    operations: int = 1

    def __post_init__(self) -> None:
        whole = 1 <= self.operations <= 16 and self.operations == int(self.operations)
        expected = "a whole number of operations from 1 to 16"
        require(type(self).__name__, whole, expected, self.operations)
        object.__setattr__(self, "operations", int(self.operations))

    @abstractmethod
    def levels(self) -> dict[str, Tensor]:
        """Return the strengths of each operation that has some, from none to its strongest."""

    @abstractmethod
    def bins(self, n: int, rng: Rng) -> Tensor:
        """Choose one of the strengths for each view of each example."""

    @property
    @abstractmethod
    def warp(self) -> _Warp:
        """The warps, which know whether translations are in pixels or in sides."""

    def draw(self, n: int, rng: Rng) -> Params:
        """Draw ``(operation, level)`` for each step."""
        table, signed, _ = _tables(self, rng.keys.device)
        steps = []
        for k in range(self.operations):
            at = rng.child(k)
            operation = at.child(0).integers(n, len(OPERATIONS))
            negative = signed[operation] & (at.child(1).integers(n, 2) == 1)
            level = table[operation, self.bins(n, at.child(2))]
            steps.append((operation, torch.where(negative, -level, level)))
        return tuple(steps)

    def apply(self, x: Tensor, params: Params) -> Tensor:
        parts = tuple(self.warp if part is None else part for part in _PARTS)
        _, _, kernels = _tables(self, x.device)
        steps = []
        for operation, level in params:
            given = (_given(part, operation, level) for part in parts)
            steps.append((kernels[operation], *given))
        return route(x, parts, steps)


@dataclass(frozen=True, repr=False)
class trivial_augment(Recipe):
    """TrivialAugment (wide): `operations` random operations, each with one of 31 strengths.

    The strengths are those of torchvision's `TrivialAugmentWide`; `pixels` is the longest
    translation.
    """

    ladder = ((1,), (2,), (3,), (4,))
    pixels: float = field(default=32.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require("trivial_augment", self.pixels > 0, "pixels over 0", self.pixels)

    def _scaled(self, factor: float) -> trivial_augment:
        return replace(self, pixels=self.pixels * factor)

    def levels(self) -> dict[str, Tensor]:
        return _levels(shear=0.99, translation=self.pixels, degrees=135, blend=0.99, bits=6)

    def bins(self, n: int, rng: Rng) -> Tensor:
        return rng.integers(n, BINS)

    @property
    def warp(self) -> _Warp:
        return _Warp(relative=False)


@dataclass(frozen=True, repr=False)
class rand_augment(Recipe):
    """RandAugment: `operations` random operations of strength `level` out of 0 to 30.

    The strengths are those of torchvision's `RandAugment`.
    """

    ladder = ((2, 5), (2, 9), (2, 15), (2, 24))
    operations: int = 2
    level: int = 9

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = 0 <= self.level < BINS and self.level == int(self.level)
        require("rand_augment", whole, "a whole level from 0 to 30", self.operations, self.level)
        object.__setattr__(self, "level", int(self.level))

    @property
    def magnitude(self) -> float:
        return float(self.operations * self.level)

    def levels(self) -> dict[str, Tensor]:
        return _levels(shear=0.3, translation=150 / 331, degrees=30, blend=0.9, bits=4)

    def bins(self, n: int, rng: Rng) -> Tensor:
        return torch.full((n, len(rng.keys)), self.level, device=rng.keys.device)

    @property
    def warp(self) -> _Warp:
        return _Warp(relative=True)


def _levels(
    *, shear: float, translation: float, degrees: float, blend: float, bits: int
) -> dict[str, Tensor]:
    """Return torchvision's strengths, given the strongest; `bits` is how many posterizing drops."""
    warps = {"ShearX": shear, "ShearY": shear, "TranslateX": translation}
    warps |= {"TranslateY": translation, "Rotate": degrees}
    strongest = warps | dict.fromkeys(("Brightness", "Color", "Contrast", "Sharpness"), blend)
    thresholds = (torch.linspace(1, 0, BINS).double() * 255).float().ceil()  # of 8-bit levels
    return {name: torch.linspace(0, value, BINS) for name, value in strongest.items()} | {
        "Posterize": (8 - torch.arange(BINS) / ((BINS - 1) / bits)).round(),
        "Solarize": ((thresholds - 0.5) / 255).float(),  # between two levels, so that none is on it
    }


@lru_cache(maxsize=64)
def _tables(recipe: Recipe, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return the levels of all operations, which have a sign, and the part that each goes to."""
    with torch.inference_mode(False):  # they outlive the mode in which they are first asked for
        levels, none = recipe.levels(), torch.zeros(BINS)
        table = torch.stack([levels.get(name, none) for name in OPERATIONS])
        signed = torch.tensor([name in _SIGNED for name in OPERATIONS])
        return table.to(device), signed.to(device), torch.tensor(_KERNELS, device=device)


class _Warp(Affine):
    """Any of the five warps; the parameters are the number of the operation and its level."""

    def __init__(self, relative: bool) -> None:
        self.relative = relative

    def draw(self, n: int, rng: Rng) -> Params:
        raise NotImplementedError("the recipe draws for all of its operations")

    def inverse(self, params: Tensor, height: int, width: int) -> tuple[Tensor, ...]:
        operation, level = params.unbind(-1)
        shear_x, shear_y, x, y, degrees = (
            torch.where(operation == OPERATIONS.index(name), level, 0)
            for name in ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")
        )
        if self.relative:
            x, y = x * width, y * height
        angle = degrees * (math.pi / 180)
        cos, sin = angle.cos(), angle.sin()
        # shears leave the upper or left edge where it is; translations are by whole pixels
        x0 = shear_x * (height / 2) - x.trunc()
        y0 = shear_y * (width / 2) - y.trunc()
        return cos, shear_x - sin, shear_y + sin, cos, x0, y0


def _given(part: Augmentation, operation: Tensor, level: Tensor) -> Tensor:
    """Return what a part takes for its parameters."""
    if isinstance(part, _Warp):
        return torch.stack([operation.to(level.dtype), level], dim=-1)
    return 1 + level if isinstance(part, Blend) else level


class _Contrast(Blend):
    """Contrast about the mean brightness, where `contrast` takes the mean of all channels."""

    def plainer(self, x: Tensor) -> Tensor:
        return luma(x).mean(dim=(-3, -2, -1), keepdim=True)


_SIGNED = OPERATIONS[1:10]
_PARTS: tuple[Augmentation | None, ...] = (
    identity(), None, brightness(1), saturation(1), _Contrast(1), sharpness(1),
    posterize(1), solarize(0), Always(autocontrast()), Always(equalize()),
)  # fmt: skip
"""What transforms the images, None for the warps: the five go through one kernel together."""

_KERNELS = (0, *[1] * 5, *range(2, 10))
"""The part of each operation."""
