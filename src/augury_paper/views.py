"""Views of all examples in one place: made once, or drawn anew for each epoch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.pixels import to_bytes
from augury._base.rng import Rng
from augury.augmentations import Augmentation
from augury.data.dataset import Dataset
from augury_paper.settings import Settings


@dataclass(frozen=True)
class Pool:
    """All examples with their views, as bytes on the device.

    The views are made once, as the paper did ("explicitly transform the images and add them to
    the dataset"), so that T is the same for all objectives and all trials.
    """

    x: Tensor
    y: Tensor
    views: Tensor
    """``(n, N, *shape)``."""
    weights: Tensor
    """``(n,)``."""
    classes: int

    @classmethod
    def of(
        cls, data: Dataset, augmentation: Augmentation, n_views: int, device: torch.device
    ) -> Pool:
        """Make views of each example, by the augmentation's quadrature rule where it has one."""
        parts, weights = [], torch.empty(0)
        for index in torch.arange(len(data)).split(2048):
            x = data.batch(index, device, torch.float32)
            views, weights = augmentation.weighted_views(x, n_views, Rng(0, index.to(device)))
            parts.append(to_bytes(views))
        classes = len(data.classes or ())
        return cls(data.x.to(device), data.y.to(device), torch.cat(parts, 1), weights, classes)


class FreshViews:
    """One random view of every example, as bytes on the device; `renew` draws the next ones.

    A view depends on the seed, the example's number and the epoch's alone.
    """

    def __init__(
        self, data: Dataset, augmentation: Augmentation, device: torch.device, seed: int = 0
    ) -> None:
        self.augmentation, self.seed = augmentation, seed
        self.originals = data.x.to(device)
        self.x = torch.empty_like(self.originals, dtype=torch.uint8)

    def renew(self, epoch: int) -> None:
        """Draw the views of an epoch, in place."""
        numbers = torch.arange(len(self.x), device=self.x.device)
        for part in numbers.split(4096):
            rng = Rng(self.seed, part + epoch * len(self.x))
            self.x[part] = to_bytes(
                self.augmentation.views(_floats(self.originals[part]), 1, rng)[0]
            )

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return views as numbers in [0, 1]."""
        return _floats(self.x[rows])


def n_views_made(settings: Settings) -> int:
    """Return the number of views of an example in the averaging experiment's pool.

    It is half of what the other experiments use, since training time is proportional to it.
    """
    return max(4, settings.n_views // 2)


def _floats(x: Tensor) -> Tensor:
    return x.float() / 255
