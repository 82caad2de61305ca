"""What a score is: an expected gain for each candidate, known before any network is trained."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch
from scipy.special import stdtr, stdtrit
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations import identity
from augury.augmentations.base import Augmentation
from augury.cluster import Journal, Workers
from augury.data.dataset import Dataset
from augury.data.stream import Stream
from augury.features.base import FeatureMap
from augury.features.orbit import Orbit
from augury.forecasting.forecast import Judgement
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.verdicts import SHARE
from augury.results.ranking import Trend
from augury.statistics.base import Estimate, group_of
from augury.statistics.jackknife import jackknife

_ROWS = {"cpu": 4096, "cuda": 32768}  # views in flight: enough for full speed, little memory

_ERRORS = 3.0
"""By how many standard errors a baseline must be better than chance for verdicts to be given."""


@dataclass(frozen=True)
class Setting:
    """What all candidates are judged on, and how."""

    data: Dataset
    phi: FeatureMap | None
    n_views: int
    seed: int
    device: torch.device
    dtype: torch.dtype = torch.float32
    batch_size: int | None = None
    plan: TrainingPlan = field(default_factory=TrainingPlan)
    budget: float | None = None
    effort: int | None = None
    started: float = field(default_factory=perf_counter)
    own: OwnNetwork | None = None
    """The user's own network, for a trial to train."""
    trends: bool = False
    """Whether the leaders are tried with other epochs and examples too."""
    stream: Stream | None = None
    """All examples, where `data` is a sample of them."""
    workers: Workers = field(default_factory=Workers)
    journal: Journal = field(default_factory=Journal)

    @property
    def batches(self) -> int:
        """How many batches one pass over the data takes."""
        return -(-len(self.data) // self.batch)

    @property
    def batch(self) -> int:
        """How many examples are augmented together."""
        return self.batch_size or max(16, _ROWS[self.device.type] // self.n_views)

    def orbits(self, augmentation: Augmentation, groups: int) -> Iterator[tuple[Orbit, Tensor]]:
        """Stream the orbits of all examples, group after group, with the examples' indices."""
        index = torch.arange(len(self.data))
        order = group_of(index, groups).argsort(stable=True)
        for part in order.split(self.batch):
            x = self.data.batch(part, self.device, self.dtype)
            rng = Rng(self.seed, part.to(self.device))
            assert self.phi is not None  # scores on features are given some
            yield Orbit.of(self.phi, augmentation, x, self.n_views, rng), part


@dataclass(frozen=True)
class Judged:
    """What a score found: the baseline, each candidate, and how far that goes.

    Attributes
    ----------
    baseline
        No augmentation: its score, and the interval of that score.
    candidates
        In the order in which they were given.
    matters
        The least gain that counts as an effect.
    warnings
        What a reader must know before the numbers.
    decides
        Whether verdicts may be given at all.
    sure
        Whether they may say more than "probably".
    trends
        How the leaders' gains change with the plan.
    faultless
        Whether every held-out example was classified correctly without augmentation.
    """

    baseline: Judgement
    candidates: list[Judgement]
    matters: float
    warnings: tuple[str, ...] = ()
    decides: bool = True
    sure: bool = True
    trends: tuple[Trend, ...] = ()
    faultless: bool = False


class Score(ABC):
    """Judges candidates in one setting; higher is better.

    `progress` is called with (done, total, what is being judged).
    """

    name: str
    default_features: str | None = "fourier"
    """The feature map to use where none is named; None for a score that needs none."""

    def __init__(
        self,
        setting: Setting,
        progress: Callable[[int, int, str], None] = lambda done, total, now: None,
    ) -> None:
        self.setting, self._progress = setting, progress
        self._done = self._total = 0

    def expect(self, ticks: int) -> None:
        """Announce how often `tick` will be called."""
        self._total += ticks

    def tick(self, now: str) -> None:
        """Report one more piece of work done."""
        self._done += 1
        self._progress(self._done, max(self._done, self._total), now)

    @abstractmethod
    def judge_all(self, candidates: Sequence[Augmentation]) -> Judged:
        """Judge candidates against no augmentation."""

    def trust(self) -> str:
        """Return how far the score can be relied on for this data; empty where not known."""
        return ""

    def plan(self, planned: dict[str, Any]) -> dict[str, Any]:
        """Return the planned training in plain values, as far as the score is about it."""
        return planned

    def effort(self) -> dict[str, Any]:
        """Return the work that was done, in plain values; empty for a closed form."""
        return {}

    def describe(self) -> str:
        """Return what candidates were judged with."""
        return "" if self.setting.phi is None else self.setting.phi.describe()


class ClosedForm(Score):
    """A score that evaluates one candidate after the other, with replicates paired over them."""

    measured = ""
    """What comparisons with real training showed, in a sentence."""

    @abstractmethod
    def evaluate(self, augmentation: Augmentation) -> Estimate:
        """Return a candidate's score."""

    def trust(self) -> str:
        return (
            "This score is computed from fixed features: no network is trained, so it does not "
            f"forecast a gain in accuracy. {self.measured} Train with the top candidates before "
            "you rely on the ranking."
        )

    def plan(self, planned: dict[str, Any]) -> dict[str, Any]:
        return {}  # no training is forecast

    def ticks(self, candidates: int) -> int:
        """Return how often `tick` is called while so many candidates are judged."""
        return self.setting.batches * candidates

    def evaluate_all(self, augmentations: Sequence[Augmentation]) -> list[Estimate]:
        """Return the scores of several candidates."""
        return [self.evaluate(augmentation) for augmentation in augmentations]

    def judge_all(self, candidates: Sequence[Augmentation]) -> Judged:
        self.expect(self.ticks(1 + len(candidates)))
        base, *found = self.evaluate_all([identity(), *candidates])
        own = jackknife(base.value, base.replicates)
        judged = [self._judge(each, base) for each in found]
        baseline = Judgement(base.value, 0.0, own.low, own.high, 0.5)
        learnt = base.value > base.chance + _ERRORS * own.error
        warnings = () if learnt else (
            "without augmentation, the features predict the labels no better than chance, so the "
            "result says nothing about augmentations",
        )  # fmt: skip
        return Judged(baseline, judged, SHARE * abs(base.value), warnings, decides=learnt)

    def _judge(self, found: Estimate, base: Estimate) -> Judgement:
        gain = found.value - base.value
        interval = jackknife(gain, found.replicates - base.replicates)
        error = max(interval.error, 1e-12)
        probability = float(stdtr(max(1, len(base.replicates) - 1), gain / error))
        return Judgement(
            found.value, gain, interval.low, interval.high, probability,
            self._by_class(found, base), clear=not interval.low <= 0 <= interval.high,
        )  # fmt: skip

    def _by_class(self, found: Estimate, base: Estimate) -> tuple[tuple[float, float, float], ...]:
        """Return the change of each class with its interval, from no more groups than members."""
        if self.setting.data.classes is None:
            return ()
        changes = (found.per_class - base.per_class).tolist()
        without = (found.class_replicates - base.class_replicates).unbind(1)
        members = torch.bincount(self.setting.data.y.long(), minlength=len(changes))
        each = []
        for change, rest, count in zip(changes, without, members.tolist(), strict=False):
            error, freedom = jackknife(change, rest).error, min(len(rest), int(count)) - 1
            known = freedom > 0 and math.isfinite(error)
            half = float(stdtrit(freedom, 0.975)) * error if known else math.inf
            each.append((change, change - half, change + half))
        return tuple(each)
