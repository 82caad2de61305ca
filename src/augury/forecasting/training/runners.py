"""How a fold's networks are trained: all as one, one to a core, or a network of the user's own."""

from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from augury._base.parallel import run_parallel
from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.forecasting.training.grouped import Grouped
from augury.forecasting.training.members import Fold, Schedule, run_members, train_members
from augury.forecasting.training.own import OwnTrainer, run_together, too_large
from augury.forecasting.training.spectrogram import front_end


@dataclass(frozen=True)
class Runner(ABC):
    """Trains candidates on folds, and no augmentation on others, and runs held-out examples."""

    network: Any
    """An architecture by name, or an `OwnNetwork`."""
    data: Dataset
    schedule: Schedule
    device: torch.device
    tick: Callable[[str], None]

    @abstractmethod
    def run(
        self, candidates: list[Augmentation], folds: list[Fold], clean: list[Fold]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return outputs ``(held, candidates, C)`` of each fold, ``(held, 1, C)`` of each clean."""

    def start(self, fold: Fold) -> Grouped:
        shape = front_end(self.data).shape
        return Grouped(self.network, 1, shape, self.data.outputs, fold.start)


class Together(Runner):
    """All as one grouped network: a GPU is idle with one small network."""

    def run(
        self, candidates: list[Augmentation], folds: list[Fold], clean: list[Fold]
    ) -> tuple[list[Tensor], list[Tensor]]:
        starts = [self.start(fold) for fold in folds for _ in candidates]
        net = Grouped.joined([*starts, *(self.start(replica) for replica in clean)])
        tried = folds if candidates else []
        train_members(net.to(self.device), self.data, self.schedule, candidates, tried, clean)
        self.tick("all candidates")
        rows = [fold.held for fold in (*tried, *clean)]
        copies = [len(candidates)] * len(tried) + [1] * len(clean)
        found = run_members(net, self.data, rows, copies)
        return found[: len(tried)], found[len(tried) :]


_Job = tuple[Fold, Augmentation | None]

_AT_ONCE = 4  # networks of one's own that a GPU trains at a time


class Single(Runner):
    """One network after the other."""

    def run(
        self, candidates: list[Augmentation], folds: list[Fold], clean: list[Fold]
    ) -> tuple[list[Tensor], list[Tensor]]:
        jobs: list[_Job] = [(fold, candidate) for fold in folds for candidate in candidates]
        done = self.run_jobs([*jobs, *((fold, None) for fold in clean)])
        step = len(candidates)
        tried = [torch.cat(done[k : k + step], 1) for k in range(0, len(jobs), step or 1)]
        return tried, done[len(jobs) :]

    @abstractmethod
    def run_jobs(self, jobs: list[_Job]) -> list[Tensor]:
        """Train a network for each job, and return its outputs for the held-out examples."""


class OneByOne(Single):
    """Each network on a core of its own: a CPU runs plain convolutions faster."""

    def run_jobs(self, jobs: list[_Job]) -> list[Tensor]:
        # made here, since threads share the generator that first weights are drawn from
        starts = {fold.number: self.start(fold) for fold, _ in jobs}

        def work(job: _Job, tick: Callable[[str], None]) -> Tensor:
            fold, candidate = job
            net = copy.deepcopy(starts[fold.number]).to(self.device)
            chosen = ([], [], [fold]) if candidate is None else ([candidate], [fold], [])
            train_members(net, self.data, self.schedule, *chosen)
            tick(_called(candidate))
            return run_members(net, self.data, [fold.held], [1])[0]

        return run_parallel(work, jobs, self.tick)


class OwnRunner(Single):
    """Copies of a network of the user's own, a few at a time on a GPU."""

    def run_jobs(self, jobs: list[_Job]) -> list[Tensor]:
        most = _AT_ONCE if self.device.type == "cuda" else 1
        try:
            return self._run(jobs, most)
        except torch.OutOfMemoryError:
            if most > 1:
                with contextlib.suppress(torch.OutOfMemoryError):
                    return self._run(jobs, 1)
            raise too_large(self.data, self.device) from None

    def _run(self, jobs: list[_Job], most: int) -> list[Tensor]:
        trainers = [
            OwnTrainer(self.network, self.data, self.schedule, self.device)
            for _ in range(min(most, len(jobs)))
        ]
        found: list[Tensor] = []
        for k in range(0, len(jobs), most):
            some = jobs[k : k + most]
            found += run_together(trainers, [(candidate, fold) for fold, candidate in some])
            for _, candidate in some:
                self.tick(_called(candidate))
        return found


def _called(candidate: Augmentation | None) -> str:
    return "no augmentation" if candidate is None else repr(candidate)
