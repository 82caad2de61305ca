"""JPEG compression in torch, on all images of a batch at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations.base import Family, Nodes, flat, require
from augury.augmentations.symmetries import even

# the example tables of the standard (ITU-T T.81, annex K): steps for brightness and for colour
_LUMA = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
_CHROMA = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *(((99,) * 8,) * 4),
)
_TIE = 1e-3
"""Added before rounding down, so that ties round alike on every device."""


@dataclass(frozen=True, repr=False)
class jpeg(Family):
    """JPEG compression with a quality uniform in `quality` to 100.

    Colours are halved in resolution (4:2:0), as Pillow does; images that have not three channels
    are compressed channel by channel as grey ones. Not differentiable: levels are rounded.
    """

    ladder = ((80,), (50,), (25,), (10,))
    kinds = frozenset({"image"})
    quality: int = 50

    def __post_init__(self) -> None:
        whole = 1 <= self.quality <= 100 and self.quality == int(self.quality)
        require("jpeg", whole, "a whole quality from 1 to 100", self.quality)
        object.__setattr__(self, "quality", int(self.quality))
        object.__setattr__(self, "size", 101 - self.quality)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return self.quality + rng.integers(n, 101 - self.quality)

    def nodes(self, n: int) -> Nodes | None:
        qualities = torch.arange(self.quality, 101).unsqueeze(1)
        return Nodes(qualities, even(len(qualities))) if n >= len(qualities) else None

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        n, b = params.shape[0], x.shape[1]
        quality = params.to(x.dtype).expand(n, b).flatten()
        levels = _nearest(flat(x, n).clamp(0, 1) * 255)
        levels = (_colour if x.shape[-3] == 3 else _grey)(levels, quality)
        return (levels / 255).unflatten(0, (n, b))


def _nearest(x: Tensor) -> Tensor:
    return (x + (0.5 + _TIE)).floor_()


def _grey(levels: Tensor, quality: Tensor) -> Tensor:
    return _compress(levels, _steps(_LUMA, quality))


def _colour(levels: Tensor, quality: Tensor) -> Tensor:
    height, width = levels.shape[-2:]
    red, green, blue = levels.split(1, dim=1)
    luma = _nearest(0.299 * red + 0.587 * green + 0.114 * blue)
    chroma = torch.cat(
        [
            128 - 0.168736 * red - 0.331264 * green + 0.5 * blue,
            128 + 0.5 * red - 0.418688 * green - 0.081312 * blue,
        ],
        dim=1,
    )
    luma = _compress(luma, _steps(_LUMA, quality))
    chroma = _compress(_halve(_nearest(chroma)), _steps(_CHROMA, quality))
    chroma = _double(chroma[..., : (width + 1) // 2])[..., :height, :width]
    cb, cr = (chroma - 128).split(1, dim=1)
    return torch.cat(
        [
            luma + _nearest(1.402 * cr),
            luma + _nearest(-0.344136 * cb - 0.714136 * cr),
            luma + _nearest(1.772 * cb),
        ],
        dim=1,
    ).clamp_(0, 255)


def _halve(levels: Tensor) -> Tensor:
    """Average 2 × 2 pixels; halves go down and up in turn along a row, as in libjpeg.

    The width is filled up to whole blocks before the average is taken, the height after it.
    """
    height, width = levels.shape[-2:]
    levels = F.pad(levels, (0, -width % 16, 0, height % 2), mode="replicate")
    sums = F.avg_pool2d(levels, 2) * 4
    bias = 1 + torch.arange(sums.shape[-1], device=levels.device) % 2
    return ((sums + bias) / 4).floor_()


def _double(levels: Tensor) -> Tensor:
    """Interpolate to twice the size, in sixteenths rounded as libjpeg does."""
    doubled = F.interpolate(levels, scale_factor=2, mode="bilinear", align_corners=False) * 16
    bias = 8 - torch.arange(doubled.shape[-1], device=levels.device) % 2
    return ((doubled + bias) / 16).floor_()


def _steps(table: tuple[tuple[int, ...], ...], quality: Tensor) -> Tensor:
    """Return the quantisation steps at each quality: shape ``(m, 1, 1, 64)``."""
    scale = torch.where(quality < 50, (5000 / quality).floor(), 200 - 2 * quality)
    base = torch.tensor(table).to(quality).flatten()
    steps = ((base * scale.unsqueeze(-1) + 50) / 100 + 1e-4).floor().clamp(1, 255)
    return steps[:, None, None]


def _compress(levels: Tensor, steps: Tensor) -> Tensor:
    """Quantise the cosine transform of each 8 × 8 block; the last ones are filled up with edges."""
    rows, columns = levels.shape[-2:]
    levels = F.pad(levels, (0, -columns % 8, 0, -rows % 8), mode="replicate")
    m, c, height, width = levels.shape
    cosines = _cosines(levels)
    blocks = (levels - 128).reshape(m, c, height // 8, 8, width // 8, 8)
    blocks = blocks.transpose(-2, -3).reshape(m, c, -1, 64)
    eighths = _nearest(blocks @ cosines.mT * 8)  # libjpeg keeps three bits below the point
    whole = ((eighths.abs() / steps + 4) / 8 + 1e-4).floor_() * eighths.sign()
    back = _nearest((whole * steps) @ cosines + 128).clamp_(0, 255)
    back = back.reshape(m, c, height // 8, width // 8, 8, 8).transpose(-2, -3)
    return back.reshape(m, c, height, width)[..., :rows, :columns]


def _cosines(like: Tensor) -> Tensor:
    """Return the orthonormal cosine transform of 8 × 8 blocks as a 64 × 64 matrix."""
    k = torch.arange(8, dtype=torch.float64)
    matrix = ((2 * k + 1) * k.unsqueeze(1) * (math.pi / 16)).cos() / 2
    matrix[0] /= math.sqrt(2)
    return torch.kron(matrix, matrix).to(like)
