"""How the networks of a fold are trained: together, one per core, or the user's own network."""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from augury._base.parallel import run_parallel
from augury.augmentations.base import Augmentation
from augury.cluster import Journal, Tensors, Workers
from augury.data.dataset import Dataset
from augury.forecasting.training.grouped import Grouped
from augury.forecasting.training.members import Fold, Schedule, run_members, train_members
from augury.forecasting.training.own import OwnTrainer
from augury.forecasting.training.spectrogram import front_end

_DRAWING = threading.Lock()  # threads share the generator that first weights are drawn from


@dataclass(frozen=True)
class Runner(ABC):
    """Trains candidates on folds, and no augmentation on others, and runs held-out examples."""

    network: Any
    """An architecture by name, or an `OwnNetwork`."""
    data: Dataset
    schedule: Schedule
    device: torch.device
    tick: Callable[[str], None]
    workers: Workers = field(default_factory=Workers)
    journal: Journal = field(default_factory=Journal)

    @property
    def apart(self) -> bool:
        """Whether jobs are sent to workers or kept in a journal, and not simply done here."""
        return self.workers.remote or self.journal.path is not None

    @abstractmethod
    def run(
        self, candidates: list[Augmentation], folds: list[Fold], clean: list[Fold]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return outputs ``(held, candidates, C)`` of each fold, ``(held, 1, C)`` of each clean."""

    def named(self, fold: Fold, what: str) -> str:
        """Return a name that tells a job from the others of a journal."""
        network = self.network if isinstance(self.network, str) else "own network"
        schedule = f"{self.schedule.epochs} epochs of {len(fold.train)} examples"
        rows = torch.cat([fold.train, fold.held]).numpy().tobytes()  # depends on the folds' number
        split = f"fold {fold.number} ({blake2b(rows, digest_size=8).hexdigest()})"
        return f"{network}, {schedule} of {self.data.shape}, {split}: {what}"

    def start(self, fold: Fold) -> Grouped:
        """Return the network that a fold starts from."""
        shape = front_end(self.data).shape
        with _DRAWING:
            return Grouped(self.network, 1, shape, self.data.outputs, fold.start)


class Together(Runner):
    """All as one grouped network: a GPU is idle with one small network."""

    def run(
        self, candidates: list[Augmentation], folds: list[Fold], clean: list[Fold]
    ) -> tuple[list[Tensor], list[Tensor]]:
        if self.apart:
            return self._by_fold(candidates, folds, clean)
        starts = [start for start in map(self.start, folds) for _ in candidates]
        net = Grouped.joined([*starts, *map(self.start, clean)])
        tried = folds if candidates else []
        train_members(net.to(self.device), self.data, self.schedule, candidates, tried, clean)
        self.tick("all candidates")
        rows = [fold.held for fold in (*tried, *clean)]
        copies = [len(candidates)] * len(tried) + [1] * len(clean)
        found = run_members(net, self.data, rows, copies)
        return found[: len(tried)], found[len(tried) :]

    def _by_fold(
        self, candidates: list[Augmentation], folds: list[Fold], clean: list[Fold]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Run a fold after the other, each one grouped network, whatever the number of GPUs."""
        count = len(folds) or 1
        step = len(clean) // count
        jobs = {}
        for k in range(count):
            mine = clean[k * step : (k + 1) * step]
            first = (folds or mine)[k if folds else 0]
            name = self.named(first, f"{len(mine)} without and {list(map(repr, candidates))}")
            jobs[name] = (candidates, folds[k : k + 1], mine)
        alone = replace(self, tick=_silent, workers=Workers(1), journal=Journal())
        found = list(
            self.workers.map(train_group, alone, jobs, journal=self.journal, tick=self.tick)
        )
        tried = [outputs[0].to(self.device) for outputs in found] if folds and candidates else []
        rest = [part.to(self.device) for outputs in found for part in outputs[len(tried) > 0 :]]
        return tried, rest


_Job = tuple[Fold, Augmentation | None]


class Single(Runner):
    """One network after the other."""

    def run(
        self, candidates: list[Augmentation], folds: list[Fold], clean: list[Fold]
    ) -> tuple[list[Tensor], list[Tensor]]:
        jobs: list[_Job] = [(fold, candidate) for fold in folds for candidate in candidates]
        every: list[_Job] = [*jobs, *((fold, None) for fold in clean)]
        done = self._sent(every) if self.apart else self.run_jobs(every)
        step = len(candidates)
        tried = [torch.cat(done[k : k + step], 1) for k in range(0, len(jobs), step or 1)]
        return tried, done[len(jobs) :]

    @abstractmethod
    def run_jobs(self, jobs: list[_Job]) -> list[Tensor]:
        """Train a network for each job, and return its outputs for the held-out examples."""

    def _workers(self) -> Workers:
        return self.workers

    def _sent(self, jobs: list[_Job]) -> list[Tensor]:
        """Train on workers, one network per job."""
        alone = replace(self, tick=_silent, workers=Workers(1), journal=Journal())
        named = {
            self.named(fold, _called(candidate)): (fold, candidate) for fold, candidate in jobs
        }
        found = self._workers().map(
            train_alone, alone, named, journal=self.journal,
            tick=lambda name: self.tick(name.split(": ", 1)[1]),
        )  # fmt: skip
        return [outputs.to(self.device) for (outputs,) in found]


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
    """Copies of the user's own network."""

    def _workers(self) -> Workers:
        # here one at a time, since they draw from the one generator that there is
        here = Workers(1, threads=torch.get_num_threads())
        return self.workers if self.workers.remote else here

    def run_jobs(self, jobs: list[_Job]) -> list[Tensor]:
        trainer = OwnTrainer(self.network, self.data, self.schedule, self.device)
        found = []
        for fold, candidate in jobs:
            found.append(trainer.run(candidate, fold))
            self.tick(_called(candidate))
        return found


def train_alone(runner: Single, job: _Job) -> Tensors:
    """Train the network of one job."""
    (found,) = runner.run_jobs([job])
    return (found,)


def train_group(
    runner: Together, job: tuple[list[Augmentation], list[Fold], list[Fold]]
) -> Tensors:
    """Train the networks of one fold as one."""
    tried, plain = runner.run(*job)
    return (*tried, *plain)


def _silent(now: str) -> None:
    """Report nothing: progress is by job where jobs are sent."""


def _called(candidate: Augmentation | None) -> str:
    return "no augmentation" if candidate is None else repr(candidate)
