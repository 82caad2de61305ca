"""Scores from sums over examples: a candidate on a shard is a job, and the sums of shards add."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations.base import Augmentation
from augury.cluster import Tensors
from augury.data.stream import InMemory, Stream
from augury.features.base import FeatureMap
from augury.features.orbit import Orbit
from augury.forecasting.scores.base import ClosedForm
from augury.statistics.base import Estimate, Statistic, group_of

_ROWS = 16_384  # examples in memory that are one shard: enough that adding its sums costs little
_VALUES = 1 << 18  # of views made at once on a CPU: their 1 MiB stays in its cache, and the system
# is not asked for new pages for each temporary, which took half of the time (benchmarks/cluster.py)


@dataclass(frozen=True)
class Pass:
    """What a job needs to go through a shard of the examples.

    Attributes
    ----------
    stream, phi, n_views, seed, device, dtype, batch
        The examples, and how their orbits are made.
    groups
        Examples of one group are made together.
    statistic
        Without sums; None for the averaged features themselves.
    """

    stream: Stream
    phi: FeatureMap
    n_views: int
    seed: int
    device: torch.device
    dtype: torch.dtype
    batch: int
    groups: int
    statistic: Statistic | None

    def orbits(self, augmentation: Augmentation, shard: int) -> Iterator[tuple[Orbit, Tensor]]:
        """Stream the orbits of a shard, block after block and there group after group."""
        phi = self.phi.to(self.device)
        for numbers, block in self.stream.blocks(shard, self.device):
            order = group_of(numbers, self.groups).argsort(stable=True)
            for rows in order.split(self.batch):
                parts = []
                for few in rows.split(self._together()):
                    x = block.batch(few, self.device, self.dtype)
                    rng = Rng(self.seed, numbers[few].to(self.device))
                    parts.append(Orbit.of(phi, augmentation, x, self.n_views, rng))
                yield Orbit.joined(parts), numbers[rows]

    def _together(self) -> int:
        """Return how many examples of a batch are augmented at once."""
        if self.device.type != "cpu":
            return self.batch
        return max(1, _VALUES // (self.n_views * math.prod(self.stream.about.shape)))


@torch.no_grad()
def sum_shard(shared: Pass, job: tuple[Augmentation, int]) -> Tensors:
    """Return the sums of a candidate over a shard."""
    statistic = copy.copy(shared.statistic)
    assert statistic is not None
    for orbit, index in shared.orbits(*job):
        statistic.update(orbit, shared.stream.targets(index), index)
    assert statistic.sums is not None  # a shard has examples
    return statistic.sums


@torch.no_grad()
def average_shard(shared: Pass, job: tuple[Augmentation, int]) -> Tensors:
    """Return the averaged features of a shard's examples, in their order."""
    parts = [(index, orbit.mean) for orbit, index in shared.orbits(*job)]
    order = torch.cat([index for index, _ in parts]).argsort()
    features = torch.cat([mean for _, mean in parts])
    return (features[order.to(features.device)],)


class Summed(ClosedForm):
    """A closed form that is a statistic of all examples."""

    groups = 20
    """How many groups of examples are left out in turn, for error bars."""
    sections = groups
    """How many parts of the examples the statistic keeps apart."""

    @abstractmethod
    def statistic(self) -> Statistic:
        """Return the statistic, without sums."""

    def ticks(self, candidates: int) -> int:
        return candidates * len(self.stream.shards)

    @property
    def stream(self) -> Stream:
        """The examples, in shards that do not depend on the workers."""
        return self.setting.stream or InMemory(self.setting.data, _ROWS)

    def sweep(self, statistic: Statistic | None) -> Pass:
        """Return what jobs share."""
        setting = self.setting
        assert setting.phi is not None  # scores on features are given some
        return Pass(
            self.stream, setting.phi, setting.n_views, setting.seed,
            torch.device(setting.device.type), setting.dtype, setting.batch, self.sections,
            statistic,
        )  # fmt: skip

    def jobs(self, augmentations: Sequence[Augmentation], what: str) -> dict[str, Any]:
        """Return a job for each candidate and shard, by name."""
        return {
            f"{self.name} {what} of {a!r}, shard {k}": (a, k)
            for a in augmentations
            for k in self.stream.shards
        }

    def tick_job(self, name: str) -> None:
        """Report a job done, by its candidate."""
        self.tick(name.split(" of ", 1)[1].rsplit(", shard ", 1)[0])

    def evaluate_all(self, augmentations: Sequence[Augmentation]) -> list[Estimate]:
        setting, statistic = self.setting, self.statistic()
        shared = self.sweep(statistic.without_data())
        results = setting.workers.map(
            sum_shard, shared, self.jobs(augmentations, "sums"),
            journal=setting.journal, tick=self.tick_job,
            each=8 * self.sections * self._features() ** 2,
        )  # fmt: skip
        found = []
        for _ in augmentations:
            mine = islice(results, len(self.stream.shards))
            parts = (tuple(part.to(setting.device) for part in sums) for sums in mine)
            found.append(statistic.of(parts).result())
        return found

    def evaluate(self, augmentation: Augmentation) -> Estimate:
        return self.evaluate_all([augmentation])[0]

    def _features(self) -> int:
        """Return how many features there are."""
        setting = self.setting
        assert setting.phi is not None
        x = setting.data.batch(torch.arange(1), setting.device, setting.dtype)
        with torch.no_grad():
            return setting.phi(x).shape[1]
