"""Examples with their versions, made once."""

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
    """All examples with their versions, as bytes on the device.

    The versions are made once, as the paper did ("explicitly transform the images and add them to
    the dataset"), so that T is the same for all objectives and all trials.
    """

    x: Tensor
    y: Tensor
    versions: Tensor
    """``(n, N, *shape)``."""
    weights: Tensor
    """``(n,)``."""
    classes: int

    @classmethod
    def of(cls, data: Dataset, augmentation: Augmentation, n: int, device: torch.device) -> Pool:
        """Make n versions of each example, by the augmentation's own rule where it has one."""
        parts, weights = [], torch.empty(0)
        for index in torch.arange(len(data)).split(2048):
            x = data.batch(index, device, torch.float32)
            versions, weights = augmentation.versions(x, n, Rng(0, index.to(device)))
            parts.append(to_bytes(versions))
        classes = len(data.classes or ())
        return cls(data.x.to(device), data.y.to(device), torch.cat(parts, 1), weights, classes)


def versions_made(settings: Settings) -> int:
    """Give the number of versions of an example in a pool: half of what other experiments use.

    What is made is T, whatever its number, and training takes time in proportion to it.
    """
    return max(4, settings.versions // 2)
