"""What the table compares, on which data: Section 5.2 and Appendix E.3 of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from augury._base.pixels import to_bytes
from augury._base.rng import Rng
from augury.augmentations import parse
from augury.data.dataset import Dataset
from augury_paper.settings import Settings

METHODS = {
    "none": "no augmentation",
    "traditional": "traditional augmentation",
    "augmented": "augmented features",
    "equal": "augmented features, as many nodes as views",
    "exact": "exact objective on the same nodes",
    "tangent": "augmented features, tangent",
    "sklearn": "scikit-learn's pair on transformed images",
}
"""The first three are the paper's; the others are solved in closed form alone."""
PRINTED = ("none", "traditional", "augmented")
HELD_OUT = {"traditional": True, "exact": True, "augmented": False, "equal": False}
"""In closed form, what has a λ chosen by images left out: as its own, or beside its own."""

_TEST_SEED = 1
_BLOCK = 4096


@dataclass(frozen=True)
class ImageTask:
    """A data set and what is done to it.

    Attributes
    ----------
    augmentation
        Of the training images.
    turn
        How test images are turned, to make the task harder; empty for not at all.
    share
        Views of an image, relative to the settings: 16 angles, but 36 for the whole circle.
    nodes
        Of the quadrature rule that the closed form averages over.
    least
        The least λ that images left out choose from.
    """

    augmentation: str
    turn: str
    share: float
    nodes: int
    least: float = 1e-7

    @property
    def ridges(self) -> tuple[float, ...]:
        """The λ to choose from by images left out: half decades up to 1."""
        return tuple(10.0 ** (k / 2) for k in range(round(2 * math.log10(self.least)), 1))

    def n_views(self, settings: Settings) -> int:
        """Return the number of random views of an image that traditional augmentation takes."""
        return round(self.share * settings.n_views)

    def n_nodes(self, settings: Settings) -> int:
        """Return the number of nodes that the closed form takes, at most the number of views."""
        return min(self.nodes, self.n_views(settings))


TASKS = {
    "mnist": ImageTask("rotation(15)", "rotation(15)", 1, 4),
    "cifar10": ImageTask("rotation(15)", "rotation(5)", 1, 4),
    "mammograms": ImageTask("rotation(180)", "", 36 / 16, 36),
}


def turned(images: Dataset, turn: str) -> Dataset:
    """Turn images at random, always in the same way; bytes stay bytes."""
    if not turn:
        return images
    augmentation, parts = parse(turn), []
    for index in torch.arange(len(images)).split(_BLOCK):
        x = images.batch(index, torch.device("cpu"), torch.float32)
        parts.append(augmentation.views(x, 1, Rng(_TEST_SEED, index)).squeeze(0))
    x = torch.cat(parts)
    if images.x.dtype == torch.uint8:
        x = to_bytes(x)
    return replace(images, x=x)


def split(train: Dataset, turn: str) -> tuple[Dataset, Dataset]:
    """Leave a fifth of the training images out, turned as test images are."""
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    held, rest = order[: len(order) // 5], order[len(order) // 5 :]
    kept, left_out = (replace(train, x=train.x[part], y=train.y[part]) for part in (rest, held))
    return kept, turned(left_out, turn)
