"""What a score is: a number for each candidate, known before any network is trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.features.base import FeatureMap
from augury.orbit import Orbit
from augury.rng import Rng
from augury.statistics.base import Estimate, group_of

_ROWS = {"cpu": 4096, "cuda": 32768}  # versions in flight: enough for full speed, little memory


@dataclass(frozen=True)
class Setting:
    """What all candidates are judged on, and how."""

    data: Dataset
    phi: FeatureMap
    versions: int
    seed: int
    device: torch.device
    dtype: torch.dtype = torch.float32
    batch_size: int | None = None

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
            yield Orbit.of(self.phi, augmentation, x, self.versions, rng), part


class Score(ABC):
    """Judges candidates in one setting; higher is better.

    `tick` is called `ticks` times for each candidate, for a progress bar.
    """

    name: str

    def __init__(self, setting: Setting, tick: Callable[[], None] = lambda: None) -> None:
        self.setting, self.tick = setting, tick

    @property
    def ticks(self) -> int:
        """How often `tick` is called for one candidate."""
        return self.setting.batches

    @abstractmethod
    def evaluate(self, augmentation: Augmentation) -> Estimate:
        """Give a candidate's score, with replicates paired over candidates."""
