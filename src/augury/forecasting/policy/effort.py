"""How much work a search does, and how it is cut to a budget."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch

from augury._base.errors import AuguryError
from augury.augmentations import identity, parse
from augury.data import Dataset
from augury.forecasting.effort import measure_own_pace, measure_pace
from augury.forecasting.plan import EPOCHS, TrainingPlan
from augury.forecasting.training.own import OwnNetwork

MOST_FOLDS = 4
_REPLICAS = 3
_SINGLES, _BUILT, _RECIPES, _PARTS = 54, 55, 15, 8  # networks of a round, replicas among them
_SAFETY = 0.85  # of the budget: steps vary in time
_FEWEST = 64  # examples of a fold, below which a round says nothing


@dataclass(frozen=True)
class Effort:
    """Examples of a fold in each round, and how many policies and folds the last rounds have.

    Attributes
    ----------
    singles, built, final
        Examples of a fold: of single families, of policies, and of leaders and recipes.
    finalists
        How many of the policies meet the recipes.
    contenders
        How many of these are tried again on other examples.
    folds
        How often; more often where the data gives fewer examples than `final`.
    planned
        Whether policies are tried with the planned network. The first round, which chooses what
        they are built from, always has a small one.
    """

    singles: int
    built: int
    final: int
    finalists: int = 4
    contenders: int = 4
    folds: int = 2
    planned: bool = False

    def examples(self, wanted: int, data: Dataset) -> int:
        """Return how many examples a fold has: at most two thirds of the data."""
        return max(2, min(wanted, len(data) * 2 // 3))

    def last_folds(self, data: Dataset) -> int:
        """Return how often contenders are tried again."""
        used = self.examples(self.final, data)
        return max(1, min(MOST_FOLDS, round(self.folds * self.final / used)))

    def work(self, data: Dataset) -> tuple[int, int]:
        """Return about how many examples networks are given in an epoch: first round, and later."""
        built, final = (self.examples(wanted, data) for wanted in (self.built, self.final))
        later = (
            _BUILT * built
            + (self.finalists + _RECIPES) * final
            + (self.contenders + _REPLICAS) * self.last_folds(data) * final
            + _PARTS * self.folds * built
        )
        return _SINGLES * self.examples(self.singles, data), later


EFFORTS = {
    "cpu": Effort(200, 200, 400),
    "cuda": Effort(1000, 750, 1250, planned=True),
}

OWN = Effort(500, 250, 600, folds=1, planned=True)
"""For a network of the user's own, whose copies are trained one after the other."""


def stand_in_epochs(plan: TrainingPlan) -> int:
    """Return how long a small network is trained in place of the planned one.

    A few epochs of fine-tuning end where training from scratch ends after many.
    """
    return max(plan.epochs, EPOCHS) if plan.pretrained else plan.epochs


def choose_effort(
    data: Dataset,
    plan: TrainingPlan,
    device: torch.device,
    budget: float | None,
    started: float,
    own: OwnNetwork | None = None,
) -> Effort:
    """Return the work to do, with fewer examples where the budget asks for it.

    Parameters
    ----------
    data, plan, device
        What is searched for, and where.
    budget
        Seconds, counted from `started`; None for the default of the device.
    started
        When counting began, by `time.perf_counter`.
    own
        The user's own network, where that is trained.

    Raises
    ------
    AuguryError
        If not even the shortest search fits; the message says how long that takes.
    """
    effort = EFFORTS[device.type] if own is None else OWN
    if budget is None:
        return effort
    many = 32 if device.type == "cuda" else 4  # a GPU is idle with few
    sample = [*[identity()] * many, parse("rotation(15)"), parse("trivial_augment")]
    small = measure_pace(data, sample, device)
    if own is not None:
        other = measure_own_pace(data, sample[-2:], device, own)
    elif effort.planned:
        other = measure_pace(data, sample, device, plan.network)
    else:
        other = small
    cores = 1 if device.type == "cuda" else torch.get_num_threads()

    def seconds(e: Effort) -> float:
        first, later = e.work(data)
        return (first * small * stand_in_epochs(plan) + later * other * plan.epochs) / cores

    spent = time.perf_counter() - started
    while seconds(effort) > _SAFETY * budget - spent:
        if effort.singles <= _FEWEST:
            raise AuguryError(
                f"a budget of {budget:g} s is too short for one search; give at least "
                f"{(seconds(effort) + spent) / _SAFETY:.0f} s"
            )
        halves = {name: max(_FEWEST, getattr(effort, name) // 2) for name in ("singles", "built")}
        effort = replace(effort, **halves, final=max(2 * _FEWEST, effort.final // 2))
    return effort
