"""Pictures of examples and of what candidates make of them, for the page of a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.pixels import to_bytes
from augury._base.rng import Rng
from augury.augmentations import Augmentation
from augury.data import Dataset
from augury.data.clips import resample
from augury.results.ranking import Gallery

_SAMPLES = 4_000_000  # of sound in a page, a byte each


def make_gallery(
    data: Dataset,
    candidates: Sequence[Augmentation],
    seed: int,
    *,
    originals: int = 4,
    n_views: int = 6,
    side: int = 64,
) -> Gallery | None:
    """Make pictures of a few examples, of different classes if possible, and of their views."""
    if data.kind == "vector":
        return None
    index = _varied(data, originals)
    x = data.batch(index, torch.device("cpu"), torch.float32)
    rng = Rng(seed, index)
    if data.rate is not None:
        return _recordings(x[:2], candidates, Rng(seed, index[:2]), data.rate)
    shown = {repr(a): _picture(a.views(x, n_views, rng), side) for a in candidates}
    return Gallery(_picture(x.unsqueeze(0), side), shown)


def _recordings(
    x: Tensor, candidates: Sequence[Augmentation], rng: Rng, rate: int, n_views: int = 3
) -> Gallery:
    """Make views of recordings to be played, short enough for a page to hold all of them."""
    each = _SAMPLES // (len(x) * (1 + n_views) * max(1, len(candidates)))
    shown = rate if x.shape[-1] <= each else min(rate, 8000)

    def short(views: Tensor) -> np.ndarray:
        return resample(views.transpose(0, 1).numpy(), rate, shown)[..., :each]

    views = {repr(a): short(a.views(x, n_views, rng)) for a in candidates}
    return Gallery(short(x.unsqueeze(0)), views, shown)


def _varied(data: Dataset, count: int) -> Tensor:
    if data.classes is None:
        return torch.arange(min(count, len(data)))
    first = [int((data.y == c).nonzero()[0]) for c in range(len(data.classes))]
    step = max(1, len(first) // count)
    return torch.tensor(first[::step][:count])


def _picture(views: Tensor, side: int) -> np.ndarray:
    """Bring ``(n, b, ...)`` to ``(b, n, ...)``: bytes with three channels for images."""
    views = views.transpose(0, 1)
    if views.dim() == 4:
        return views.numpy()
    if max(views.shape[-2:]) > side:
        scale = side / max(views.shape[-2:])
        size = [max(1, round(s * scale)) for s in views.shape[-2:]]
        small = F.interpolate(views.flatten(0, 1), size, mode="bilinear", antialias=True)
        views = small.unflatten(0, views.shape[:2])
    if views.shape[2] != 3:
        views = views[:, :, :1].expand(-1, -1, 3, -1, -1)
    return to_bytes(views).movedim(2, -1).numpy()
