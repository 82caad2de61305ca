"""What a score is: a number for each candidate, known before any network is trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.features.base import FeatureMap
from augury.features.orbit import Orbit
from augury.statistics.base import Estimate, group_of

_ROWS = {"cpu": 4096, "cuda": 32768}  # versions in flight: enough for full speed, little memory


@dataclass(frozen=True)
class Setting:
    """What all candidates are judged on, and how."""

    data: Dataset
    phi: FeatureMap | None
    versions: int
    seed: int
    device: torch.device
    dtype: torch.dtype = torch.float32
    batch_size: int | None = None
    budget: float | None = None

    @property
    def batches(self) -> int:
        """How many batches one pass over the data takes."""
        return -(-len(self.data) // self._batch)

    @property
    def _batch(self) -> int:
        return self.batch_size or max(16, _ROWS[self.device.type] // self.versions)

    def orbits(self, augmentation: Augmentation, groups: int) -> Iterator[tuple[Orbit, Tensor]]:
        """Stream the orbits of all examples, group after group, with the examples' indices."""
        index = torch.arange(len(self.data))
        order = group_of(index, groups).argsort(stable=True)
        for part in order.split(self._batch):
            x = self.data.batch(part, self.device, self.dtype)
            rng = Rng(self.seed, part.to(self.device))
            assert self.phi is not None  # scores on features are given some
            yield Orbit.of(self.phi, augmentation, x, self.versions, rng), part


class Score(ABC):
    """Judges candidates in one setting; higher is better.

    `tick` is called `ticks(k)` times while k candidates are judged, with the name of what is being
    judged, for a progress bar.
    """

    name: str
    default_features: str | None = "fourier"
    """The feature map to use where none is named; None for a score that needs none."""

    def __init__(self, setting: Setting, tick: Callable[[str], None] = lambda now: None) -> None:
        self.setting, self.tick = setting, tick

    def ticks(self, candidates: int) -> int:
        """How often `tick` is called while so many candidates are judged."""
        return self.setting.batches * candidates

    @abstractmethod
    def evaluate(self, augmentation: Augmentation) -> Estimate:
        """Give a candidate's score, with replicates paired over candidates."""

    def evaluate_all(self, augmentations: Sequence[Augmentation]) -> Iterator[Estimate]:
        """Judge candidates in turn; a score that can judge them together overrides this."""
        return map(self.evaluate, augmentations)

    def trust(self) -> str:
        """Say how far the score can be relied on for this data; empty where that is not known."""
        return ""

    def describe(self) -> str:
        """Say what candidates were judged with."""
        return "" if self.setting.phi is None else self.setting.phi.describe()
