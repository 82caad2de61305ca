"""Random whitened patches as convolution filters (Coates, Lee and Ng, 2011)."""

from __future__ import annotations

import math
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.given import as_number, as_seed, as_whole, is_one_of
from augury._base.text import shown
from augury.features.base import FeatureMap, check_sample
from augury.features.exact import exact_convolutions

_SAMPLES = 20_000  # patches that the whitening is learnt from
_SMOOTH = 0.1  # of the mean variance, added to variances that are divided by
_CHANNELS = 32  # that the first layer's maps are reduced to before the second
_MAP = {"cpu": 2**20, "cuda": 2**27}  # numbers in one map in flight: a cache's worth on a CPU


class PatchFeatures(FeatureMap):
    """Responses to random patches of the data, rectified on both sides and pooled.

    At each place, the patch p there is contrast-normalised and whitened, p̃ = P(p̂ − μ) with
    p̂ = (p − mean p) / √(var p + ε); a filter f, itself such a patch of length one, gives
    max(0, fᵀp̃ − t) and max(0, −fᵀp̃ − t), and these are averaged over a grid of cells. With two
    layers, the maps of the first (reduced to 32 channels by a random projection) are the input of
    the second. Features are scaled so that E‖φ‖² = 1 over the sample. Nothing is padded.

    The cost is 2·filters·channels·size² operations a place and an example; there are
    2·filters·pool² features for images and 2·filters·pool for series.

    Parameters
    ----------
    filters
        Number of filters.
    size
        The side of a patch; by default a quarter of the example's, from 3 to 6 pixels (from 3 to
        16 points for series).
    pool
        Cells a side of the grid (along a series) that responses are averaged over.
    layers
        1 or 2.
    threshold
        t, in standard deviations of a response.
    seed
        Random seed of the choice of patches.
    """

    centre: Tensor
    mixing: Tensor
    scale: Tensor | None

    def __init__(
        self,
        filters: int = 100,
        *,
        size: int | None = None,
        pool: int = 3,
        layers: int = 1,
        threshold: float = 0.5,
        seed: int = 0,
    ) -> None:
        super().__init__()
        for name, value in (("filters", filters), ("pool", pool), ("size", size)):
            if value is not None or name != "size":
                as_whole(name, value)
        threshold = as_number("threshold", threshold)
        if filters < 1 or pool < 1 or (size is not None and size < 1):
            raise AuguryError(
                f"filters, size and pool must be 1 or more, not {filters}, {size} and {pool}"
            )
        if not is_one_of(layers, (1, 2)):
            raise AuguryError(f"patch features have 1 or 2 layers, not {shown(layers)}")
        self.filters, self.size, self.pool, self.seed = filters, size, pool, as_seed(seed)
        self.threshold = threshold
        self.first = _PatchLayer(threshold)
        self.second = _PatchLayer(threshold) if layers == 2 else None
        for name in ("centre", "mixing", "scale"):
            self.register_buffer(name, None)

    @exact_convolutions
    def fit(self, x: Tensor, y: Tensor | None = None) -> Self:
        """Choose the patches of each layer and learn to whiten them, in float64."""
        check_sample(x, y)
        if x.dim() not in (3, 4):
            raise AuguryError(
                f"patches are of images or series, but an example here has shape "
                f"{tuple(x.shape[1:])}; use the features 'fourier'"
            )
        generator = torch.Generator().manual_seed(self.seed)
        self.centre, self.scale = x.mean(), x.new_ones(())
        maps = self._maps(x)
        side, most = max(maps.shape[-2:]), 6 if x.dim() == 4 else 16
        size = self.size or max(3, min(most, side // 4))
        self.first.fit(maps, self.filters, size, generator)
        if self.second is not None:
            mixing = torch.randn(_CHANNELS, 2 * self.filters, generator=generator)
            self.mixing = (mixing / math.sqrt(2 * self.filters)).to(x)[:, :, None, None]
            parts = [self._reduced(self.first(part)) for part in self._parts(maps)]
            self.second.fit(torch.cat(parts), self.filters, 3, generator)
        self.scale = self(x).square().sum(1).mean().clamp_min(1e-12).rsqrt()
        return self

    @exact_convolutions
    def forward(self, x: Tensor) -> Tensor:
        if self.scale is None:
            raise AuguryError("these patch features have no patches yet: call fit first")
        out = []
        for part in self._parts(self._maps(x)):
            maps = self.first(part)
            if self.second is not None:
                maps = self.second(self._reduced(maps))
            height, width = (min(self.pool, side) for side in maps.shape[-2:])
            out.append(F.adaptive_avg_pool2d(maps, (height, width)).flatten(1))
        return torch.cat(out) * self.scale

    def _maps(self, x: Tensor) -> Tensor:
        """Bring examples to ``(b, channels, h, w)``: centred, no larger than needed."""
        height, width = (1, *shrink(tuple(x.shape[1:])))[-2:]
        image = x.unsqueeze(2) if x.dim() == 3 else x  # a series is an image of height one
        return F.avg_pool2d(image - self.centre, (height, width))

    def _reduced(self, maps: Tensor) -> Tensor:
        window = [2 if side >= 8 else 1 for side in maps.shape[-2:]]
        return F.conv2d(F.avg_pool2d(maps, window), self.mixing)

    def _parts(self, maps: Tensor) -> tuple[Tensor, ...]:
        numbers = self.filters * math.prod(maps.shape[-2:])
        return maps.split(max(1, _MAP[maps.device.type] // numbers))

    def describe(self) -> str:
        depth = "" if self.second is None else ", two layers"
        return f"{self.filters} random whitened patches, pooled {self.pool}×{self.pool}{depth}"


def shrink(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many pixels along each axis to average into one, so that small filters see enough.

    The longer side of an image is brought to at most 40 pixels, a series to at most 512 points.
    """
    factor = -(-max(shape[1:]) // (40 if len(shape) == 3 else 512))
    return tuple(min(factor, side) for side in shape[1:])


class _PatchLayer(nn.Module):
    """Maps ``(b, C, h, w)`` to rectified responses ``(b, 2·filters, h', w')``."""

    epsilon: Tensor
    mean: Tensor
    whiten: Tensor
    filters: Tensor
    weight: Tensor
    offset: Tensor

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold
        for name in ("epsilon", "mean", "whiten", "filters", "weight", "offset"):
            self.register_buffer(name, None)

    def fit(self, maps: Tensor, filters: int, size: int, generator: torch.Generator) -> None:
        window = [min(size, side) for side in maps.shape[-2:]]
        patches = _sample(maps, window, generator).double()
        variance = patches.var(1, correction=0)
        epsilon = _SMOOTH * variance.mean() + torch.finfo(maps.dtype).tiny
        patches = (patches - patches.mean(1, keepdim=True)) / (variance + epsilon).sqrt()[:, None]
        mean, whiten = zca(patches)
        # Filters are of patches with something in them: a blank one whitens to noise.
        blank = variance < variance.mean()
        chosen = blank.to(torch.uint8).argsort(stable=True)[:filters]
        kept = F.normalize((patches[chosen] - mean) @ whiten, dim=1)
        kept = kept[torch.arange(filters) % len(kept)]
        # fᵀP(p̂ − μ) = (Pf)ᵀp̂ − (Pf)ᵀμ; Pf sums to zero as every p̂ does, so that p's own mean
        # need not be taken away.
        weight = kept @ whiten
        self.offset = (weight @ mean).to(maps)[:, None, None]
        self.weight = weight.to(maps).view(filters, maps.shape[1], *window)
        self.epsilon, self.mean = epsilon.to(maps), mean.to(maps)
        self.whiten, self.filters = whiten.to(maps), kept.to(maps)

    def forward(self, maps: Tensor) -> Tensor:
        window = self.weight.shape[-2:]
        mean = F.avg_pool2d(maps.mean(1, keepdim=True), window, 1)
        square = F.avg_pool2d(maps.square().mean(1, keepdim=True), window, 1)
        inverse = (square - mean.square()).clamp_min(0).add(self.epsilon).rsqrt()
        # Channels last halves the time of the convolution and the pooling on a CPU.
        layout = torch.channels_last
        response = F.conv2d(maps.to(memory_format=layout), self.weight)
        response = response.mul_(inverse).sub_(self.offset)
        shape = (len(maps), 2 * len(self.weight), *response.shape[-2:])
        out = torch.empty(shape, dtype=maps.dtype, device=maps.device, memory_format=layout)
        above, below = out.split(len(self.weight), dim=1)
        torch.sub(response, self.threshold, out=above)
        torch.sub(-self.threshold, response, out=below)
        return out.clamp_min_(0)


def _sample(maps: Tensor, window: list[int], generator: torch.Generator) -> Tensor:
    """Take patches at random places of random examples: ``(samples, C·size·size)``."""
    views = maps.unfold(2, window[0], 1).unfold(3, window[1], 1)  # (N, C, h', w', size, size)
    at = [
        torch.randint(views.shape[axis], (_SAMPLES,), generator=generator).to(maps.device)
        for axis in (0, 2, 3)
    ]
    return views[at[0], :, at[1], at[2]].flatten(1)


def zca(patches: Tensor) -> tuple[Tensor, Tensor]:
    """Return μ and P = V (Λ + ε)^(−1/2) Vᵀ of the rows, with Cov = VΛVᵀ and ε a tenth of mean Λ.

    P is symmetric, so it does not depend on the signs that a solver gives to V.
    """
    mean = patches.mean(0)
    centred = patches - mean
    values, vectors = torch.linalg.eigh(centred.mT @ centred / len(patches))
    epsilon = _SMOOTH * values.mean() + torch.finfo(patches.dtype).tiny
    return mean, (vectors * (values.clamp_min(0) + epsilon).rsqrt()) @ vectors.mT
