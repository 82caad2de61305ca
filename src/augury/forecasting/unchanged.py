"""Which candidates change nothing: they gain exactly 0, and need not be tried."""

from __future__ import annotations

import torch
from torch import nn

from augury._base.rng import Rng
from augury.augmentations import Augmentation
from augury.data import Dataset

_ROUNDED = 0.501 / 255
"""How far a pixel moves at most when it is rounded to 256 levels, and a little more."""
_ALIKE, _HEARD = 1e-6, 1e-4
"""The same of other values, of deviation 1, and of spectrograms, which are summed from many."""
_FEW, _MANY, _AT_ONCE = 16, 2048, 64
"""Views that show whether an augmentation changes anything: of few examples first, then of many."""


def changes_nothing(
    augmentation: Augmentation, data: Dataset, seed: int, front: nn.Module | None = None
) -> bool:
    """Return whether views are the examples, but for rounding to 256 levels.

    A few examples from all over the data settle it for most augmentations. What leaves those as
    they are is asked for 2,048 views of as many, since it may change some classes only, or a few
    views.

    Parameters
    ----------
    augmentation, data, seed
        What is asked of what, and the seed of the views.
    front
        What turns examples into what is judged, such as spectrograms; None for the examples.
    """
    least = _HEARD if front else _ROUNDED if data.kind == "image" else _ALIKE
    for most, draws in ((_FEW, 4 * _FEW), (_MANY, _MANY)):
        count = min(most, len(data))
        n = max(1, draws // count)
        for index in (torch.arange(count) * len(data) // count).split(_AT_ONCE):
            x = data.batch(index, torch.device("cpu"), torch.float32)
            views = augmentation.views(x, n, Rng(seed, index))
            if front:
                x, views = front(x), front(views)
            if not bool((views - x).abs().max() < least):
                return False
    return True
