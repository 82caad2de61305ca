"""What the table compares, on which data: Section 5.2 and Appendix E.3 of the paper."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch

from augury._base.pixels import to_bytes
from augury._base.rng import Rng
from augury.augmentations import parse
from augury.data.dataset import Dataset
from augury_paper.settings import Settings

WAYS = ("none", "traditional", "augmented", "tangent")
"""The paper's three, and augmented features with the variance along each orbit's direction."""

_TEST_SEED = 1
_BLOCK = 4096


@dataclass(frozen=True)
class Task:
    """A data set and what is done to it.

    Attributes
    ----------
    augmentation
        Of the training images.
    turn
        By what test images are turned, to make the task harder; empty for not at all.
    share
        Versions of an image, relative to the setting: 16 angles, but 36 for the whole circle.
    nodes
        Of the quadrature rule that the closed form averages over.
    """

    augmentation: str
    turn: str
    share: float
    nodes: int

    def versions(self, settings: Settings) -> int:
        """Give how many versions of an image the paper takes."""
        return round(self.share * settings.versions)

    def rule(self, settings: Settings) -> int:
        """Give how many nodes the closed form takes: never more than the paper takes versions."""
        return min(self.nodes, self.versions(settings))


TASKS = {
    "mnist": Task("rotation(15)", "rotation(15)", 1, 4),
    "cifar10": Task("rotation(15)", "rotation(5)", 1, 4),
    "mammograms": Task("rotation(180)", "", 36 / 16, 36),
}


def turned(test: Dataset, turn: str) -> Dataset:
    """Turn test images at random, always in the same way; bytes stay bytes."""
    if not turn:
        return test
    augmentation, parts = parse(turn), []
    for index in torch.arange(len(test)).split(_BLOCK):
        x = test.batch(index, torch.device("cpu"), torch.float32)
        parts.append(augmentation.views(x, 1, Rng(_TEST_SEED, index)).squeeze(0))
    x = torch.cat(parts)
    if test.x.dtype == torch.uint8:
        x = to_bytes(x)
    return replace(test, x=x)


def now(device: torch.device) -> float:
    """Give the time when all work on a device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
