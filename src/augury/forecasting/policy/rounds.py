"""Rounds of trials: all candidates of a round on the same examples, from the same weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from augury.augmentations import Augmentation
from augury.cluster import Workers
from augury.data import Dataset
from augury.forecasting.forecast import PLANNED, QUICK, SMALL, Forecast
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.policy.effort import MOST_FOLDS, Effort, side_of, stand_in_epochs
from augury.forecasting.policy.journal import RoundJournal
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.trial import HeldOut, Trial, run_folds, shrink

SINGLES, BUILT, FINAL, LAST = 0, 2, 3, 4
"""The numbers of the first fold of each round, so that all rounds see other examples."""

PLACES = LAST + MOST_FOLDS
"""Where in the data folds begin, evenly spaced if it is too small for folds of their own."""


@dataclass
class Rounds:
    """What a search tries, one round after the other, with what each round cost."""

    data: Dataset
    plan: TrainingPlan
    device: torch.device
    seed: int
    effort: Effort
    own: OwnNetwork | None = None
    journal: RoundJournal = field(default_factory=RoundJournal)
    progress: Callable[[int, int, str], None] = lambda done, total, now: None
    workers: Workers = field(default_factory=Workers)
    path: list[dict[str, Any]] = field(default_factory=list)
    rate: float | None = None
    """The exponent of the learning curve, from the first round that had one."""
    done: int = 0
    """Examples that networks were given, each epoch; of about `total` in the whole search."""
    total: int = 0
    small: dict[int, Dataset] = field(default_factory=dict)
    """The data shrunk to each side that rounds asked for."""

    def run(
        self,
        title: str,
        candidates: Sequence[Augmentation],
        examples: int,
        numbers: Sequence[int],
        *,
        planned: bool = True,
        large: bool = False,
        curve: bool = False,
        epochs: int | None = None,
    ) -> list[HeldOut]:
        """Try candidates on some folds; a round that the journal holds is not run again.

        Parameters
        ----------
        title
            What the round is called.
        candidates, examples, numbers
            What is tried, on how many examples a fold, and the numbers of the folds.
        planned
            Whether the planned network is trained where the effort allows; else a small one.
        large
            Whether that is done on images of up to 64 pixels, as it was when forecasts were
            measured; else of 32.
        curve
            Whether the learning curve is measured too.
        epochs
            As many as are planned unless given.
        """
        planned = planned and self.effort.planned
        own = self.own if planned else None
        trial = self._trial(examples, planned, large and planned)
        trial = trial if epochs is None else replace(trial, epochs=epochs)
        specs = [repr(candidate) for candidate in candidates]
        started = time.perf_counter()
        networks = len(candidates) + (2 if curve else 1) * trial.replicas
        end = self.done + len(numbers) * networks * trial.examples
        known = self.journal.read(title, specs)
        if known is None:
            data, fitted = self._shrink(candidates, trial.side)

            def tick(now: str) -> None:
                self.done = min(self.done + trial.examples, end)
                self.progress(self.done, max(self.total, end), f"{title}: {now}")

            known = run_folds(
                data, fitted, trial, numbers,
                seed=self.seed, device=self.device, tick=tick, curve=curve, own=own,
                workers=self.workers,
                # a GPU without a cluster trains all folds as one network, which is no such job
                journal=self.journal.jobs() if self.workers.remote else None,
            )  # fmt: skip
            self.journal.write(title, specs, known)
        self.done = end
        self.path.append(
            {
                "round": title,
                "policies": len(candidates),
                "network": trial.network,
                "examples": trial.examples,
                "epochs": trial.epochs,
                "folds": len(numbers),
                "seconds": round(time.perf_counter() - started, 1),
            }
        )
        return known

    def _shrink(
        self, candidates: Sequence[Augmentation], side: int
    ) -> tuple[Dataset, list[Augmentation]]:
        """Shrink images once for each side, and candidates with them."""
        if side not in self.small:
            self.small[side] = shrink(self.data, (), side)[0]
        data = self.small[side]
        if data.shape == self.data.shape:
            return data, list(candidates)
        factor = side / max(self.data.shape[1:])
        return data, [candidate.at_scale(factor) for candidate in candidates]

    def _trial(self, examples: int, planned: bool, large: bool) -> Trial:
        used = self.effort.examples(examples, self.data)
        whole = planned and self.own is not None  # a network of one's own sees images as they are
        return Trial(
            epochs=self.plan.epochs if planned else stand_in_epochs(self.plan),
            examples=used,
            folds=PLACES,
            held=Trial.held_for(used),
            network=self.plan.network if planned else "small",
            side=max(self.data.shape[1:]) if whole else side_of(self.data, large),
        )

    def forecast(
        self, folds: Sequence[HeldOut], examples: int, *, planned: bool = True
    ) -> Forecast:
        """Return what rounds say of their candidates, all of which took part in each fold."""
        whole = PLANNED if planned and self.effort.planned else SMALL
        found = Forecast(
            folds, self.data.y, len(self.data.classes or ()),
            trained=self.effort.examples(examples, self.data),
            planned=self.plan.examples or self.data.total,
            rate=self.rate,
            calibration=QUICK if self.effort.cut else whole,
        )  # fmt: skip
        if any(len(fold.half) for fold in folds):
            self.rate = found.rate
        return found
