"""Warps: maps that move pixels. Bilinear, zero outside the image, linear in the pixels."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.rng import Rng, normal_from
from augury.augmentations.base import (
    Family,
    Nodes,
    along,
    even_spacing,
    flat,
    gauss_legendre,
    golden_points,
    require,
)


class Affine(Family):
    """An affine warp about the centre of an image, given as a map from output to input."""

    kinds = frozenset({"image"})
    linear = True

    @abstractmethod
    def inverse(self, params: Tensor, height: int, width: int) -> tuple[Tensor, ...]:
        """Return a, b, c, d, x0, y0: input pixel (ax + by + x0, cx + dy + y0) for output (x, y)."""

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        a, b, c, d, x0, y0 = torch.broadcast_tensors(
            *self.inverse(params.to(x.dtype), height, width)
        )
        # grid_sample's coordinates run from -1 to 1 over each side
        row_x = torch.stack([a, b * (height / width), x0 * (2 / width)], dim=-1)
        row_y = torch.stack([c * (width / height), d, y0 * (2 / height)], dim=-1)
        theta = torch.stack([row_x, row_y], dim=-2)  # (n, b or 1, 2, 3)
        if theta.shape[1] == 1:
            return self._apply_shared(x, theta.squeeze(1))
        n, b = theta.shape[:2]
        grid = F.affine_grid(theta.flatten(0, 1), [n * b, 1, height, width], align_corners=False)
        return sample(flat(x, n), grid).unflatten(0, (n, b))

    def _apply_shared(self, x: Tensor, theta: Tensor) -> Tensor:
        """Warp all examples by the same n maps: examples are the channels of one image.

        On a GPU one thread computes a pixel of all channels, so more images of fewer channels are
        faster there.
        """
        n, (b, channels, height, width) = len(theta), x.shape[1:]
        grid = F.affine_grid(theta, [n, 1, height, width], align_corners=False)
        images = b // _examples_per_image(b, channels) if x.is_cuda else 1
        joined = x.expand(n, -1, -1, -1, -1).reshape(n * images, -1, height, width)
        if images > 1:
            grid = grid.repeat_interleave(images, 0)
        return sample(joined, grid).reshape(n, b, channels, height, width)


def _examples_per_image(b: int, channels: int) -> int:
    """Return how many of b examples share one image: a divisor of b that makes 16 channels."""
    return next((size for size in range(1, b) if b % size == 0 and size * channels >= 16), b)


def sample(images: Tensor, grid: Tensor) -> Tensor:
    """Read images at the points of a grid: bilinear, zero outside."""
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


@dataclass(frozen=True, repr=False)
class rotation(Affine):
    """Rotation by an angle uniform in ± `degrees`."""

    ladder = ((5,), (15,), (30,), (60,), (90,), (180,))
    strongest = 180.0
    degrees: float = 15.0

    def __post_init__(self) -> None:
        require("rotation", 0 < self.degrees <= 180, "degrees in (0, 180]", self.degrees)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=-self.degrees, high=self.degrees)

    def nodes(self, n: int) -> Nodes | None:
        if self.degrees == 180:  # a whole turn is periodic: even spacing is the best rule
            return even_spacing(n, -180.0, 180.0)
        return gauss_legendre(n, -self.degrees, self.degrees)

    def inverse(self, params: Tensor, height: int, width: int) -> tuple[Tensor, ...]:
        angle = params * (math.pi / 180)
        cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
        return cos, -sin, sin, cos, zero, zero


@dataclass(frozen=True, repr=False)
class translation(Affine):
    """Translation of each axis, uniform in ± `fraction` of that side."""

    ladder = ((0.03,), (0.06,), (0.12,), (0.25,), (0.4,))
    fraction: float = 0.1

    def __post_init__(self) -> None:
        require("translation", 0 < self.fraction <= 1, "a fraction in (0, 1]", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, 2, low=-self.fraction, high=self.fraction)

    def nodes(self, n: int) -> Nodes | None:
        rule = golden_points(n, 2)
        return rule and Nodes(self.fraction * (2 * rule.params - 1), rule.weights)

    def inverse(self, params: Tensor, height: int, width: int) -> tuple[Tensor, ...]:
        one, zero = torch.ones_like(params[..., 0]), torch.zeros_like(params[..., 0])
        return one, zero, zero, one, params[..., 0] * width, params[..., 1] * height


@dataclass(frozen=True, repr=False)
class scaling(Affine):
    """Zoom of an image about its centre, or gain of a series; factor uniform in [`low`, `high`]."""

    ladder = ((0.95, 1.05), (0.9, 1.1), (0.8, 1.2), (0.6, 1.4), (0.4, 1.6))
    kinds = frozenset({"image", "series"})
    low: float = 0.9
    high: float = 1.1

    def __post_init__(self) -> None:
        require("scaling", 0 < self.low < self.high, "0 < low < high", self.low, self.high)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=self.low, high=self.high)

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, self.low, self.high)

    def inverse(self, params: Tensor, height: int, width: int) -> tuple[Tensor, ...]:
        zero = torch.zeros_like(params)
        return 1 / params, zero, zero, 1 / params, zero, zero

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return super().apply(x, params) if x.dim() == 5 else x * along(params, x)


@dataclass(frozen=True, repr=False)
class shear(Affine):
    """Horizontal shear by an angle uniform in ± `degrees`."""

    ladder = ((5,), (10,), (20,), (35,), (50,))
    degrees: float = 10.0

    def __post_init__(self) -> None:
        require("shear", 0 < self.degrees < 90, "degrees in (0, 90)", self.degrees)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=-self.degrees, high=self.degrees)

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, -self.degrees, self.degrees)

    def inverse(self, params: Tensor, height: int, width: int) -> tuple[Tensor, ...]:
        one, zero = torch.ones_like(params), torch.zeros_like(params)
        return one, (params * (math.pi / 180)).tan(), zero, one, zero, zero


@dataclass(frozen=True, repr=False)
class resized_crop(Affine):
    """A random crop with the image's aspect ratio, area uniform in [`area`, 1], resized."""

    ladder = ((0.9,), (0.75,), (0.5,), (0.3,), (0.15,))
    area: float = 0.64

    def __post_init__(self) -> None:
        require("resized_crop", 0 < self.area < 1, "an area fraction in (0, 1)", self.area)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, 3)

    def nodes(self, n: int) -> Nodes | None:
        return golden_points(n, 3)

    def inverse(self, params: Tensor, height: int, width: int) -> tuple[Tensor, ...]:
        side = (self.area + (1 - self.area) * params[..., 0]).sqrt()
        free = 1 - side  # how far the crop's centre can move, in sides
        zero = torch.zeros_like(side)
        x0, y0 = ((params[..., i] - 0.5) * free for i in (1, 2))
        return side, zero, zero, side, x0 * width, y0 * height


@dataclass(frozen=True, repr=False)
class elastic(Family):
    """Smooth random displacement: Gaussian with sd `strength` half-sides every `cell` pixels."""

    ladder = ((0.02,), (0.05,), (0.1,), (0.2,))
    kinds = frozenset({"image"})
    linear = True
    strength: float = 0.05
    cell: float = field(default=4.0, kw_only=True)

    def __post_init__(self) -> None:
        require("elastic", 0 < self.strength <= 1, "a strength in (0, 1]", self.strength)
        require("elastic", self.cell >= 0.25, "a cell of at least 0.25 pixels", self.cell)

    def _scaled(self, factor: float) -> elastic:
        return replace(self, cell=max(self.cell * factor, 0.25))

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)  # the field is made from the key where it is needed

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        n, b = params.shape[0], x.shape[1]
        coarse = [max(2, int(side // self.cell)) for side in (height, width)]
        keys = params.expand(n, b).flatten()
        field = normal_from(keys, 2 * coarse[0] * coarse[1]).unflatten(-1, (2, *coarse))
        field = F.interpolate(
            field.to(x.dtype) * self.strength, (height, width), mode="bicubic", align_corners=False
        )
        still = torch.eye(2, 3, dtype=x.dtype, device=x.device).unsqueeze(0)
        grid = F.affine_grid(still, [1, 1, height, width], align_corners=False)
        return sample(flat(x, n), grid + field.movedim(1, -1)).unflatten(0, (n, b))


@dataclass(frozen=True, repr=False)
class perspective(Family):
    """Change of perspective: each corner moves inwards by up to `distortion` half-sides.

    Over a distortion of 0.6 the moved corners could fold the image over.
    """

    ladder = ((0.1,), (0.2,), (0.35,), (0.5,))
    strongest = 0.6
    kinds = frozenset({"image"})
    linear = True
    distortion: float = 0.3

    def __post_init__(self) -> None:
        within = 0 < self.distortion <= 0.6
        require("perspective", within, "a distortion in (0, 0.6]", self.distortion)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, 4, 2, high=self.distortion)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        n, b = params.shape[0], x.shape[1]
        height, width = x.shape[-2:]
        inwards = params.to(x.dtype).expand(n, b, 4, 2).flatten(0, 1)
        still = torch.eye(2, 3, dtype=x.dtype, device=x.device).unsqueeze(0)
        at = F.affine_grid(still, [1, 1, height, width], align_corners=False)
        at = F.pad(at, (0, 1), value=1.0).reshape(1, -1, 3)  # x, y, 1 of each output pixel
        x_w, y_w, w = (at @ _from_corners(inwards).mT).split(1, dim=-1)
        grid = torch.cat([x_w / w, y_w / w], dim=-1).unflatten(1, (height, width))
        return sample(flat(x, n), grid).unflatten(0, (n, b))


def _from_corners(inwards: Tensor) -> Tensor:
    """Return the homographies (m, 3, 3) that take corners moved inwards back to (±1, ±1).

    The way out in closed form: the square's map to a quadrilateral (Heckbert, 1989), inverted by
    its adjugate, since a homography is known up to a factor.
    """
    corners = torch.tensor([[-1, -1], [1, -1], [1, 1], [-1, 1]]).to(inwards)
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = (
        point.unbind(-1) for point in (corners * (1 - inwards)).unbind(-2)
    )
    dx1, dx2, dx3 = x1 - x2, x3 - x2, x0 - x1 + x2 - x3
    dy1, dy2, dy3 = y1 - y2, y3 - y2, y0 - y1 + y2 - y3
    area = dx1 * dy2 - dx2 * dy1
    g, h = (dx3 * dy2 - dx2 * dy3) / area, (dx1 * dy3 - dx3 * dy1) / area
    rows = (
        torch.stack([x1 - x0 + g * x1, x3 - x0 + h * x3, x0], dim=-1),
        torch.stack([y1 - y0 + g * y1, y3 - y0 + h * y3, y0], dim=-1),
        torch.stack([g, h, torch.ones_like(g)], dim=-1),
    )
    adjugate = torch.stack(
        [torch.linalg.cross(rows[i], rows[j]) for i, j in ((1, 2), (2, 0), (0, 1))], dim=-1
    )
    unit_to_square = torch.tensor([[2.0, 0, -1], [0, 2, -1], [0, 0, 1]]).to(inwards)
    return unit_to_square @ adjugate
