"""How much work a search does, and how it is cut to a budget."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import torch

from augury._base.errors import AuguryError
from augury.augmentations import identity, parse
from augury.data import Dataset
from augury.forecasting.effort import measure_own_pace, measure_pace
from augury.forecasting.plan import EPOCHS, TrainingPlan
from augury.forecasting.training.members import Schedule
from augury.forecasting.training.own import OwnNetwork

MOST_FOLDS = 4
MOST_PARTS = 8  # of a policy that are left out in turn: of more, each matters little
_REPLICAS = 3
_SINGLES, _FAMILIES, _BUILT, _RECIPES, _PARTS = 51, 28, 46, 11, 8  # networks of a round, about
_SAFETY = 0.85  # of the budget: steps vary in time
_AGAIN = 1.15  # a search that is started again may find that steps take so much longer
_SMALL = 40  # pixels: images up to this side are tried as small ones
_FEWEST = {"singles": 64, "built": 64, "final": 250, "last": 250}
"""Examples of a fold to which a budget reduces rounds at most; the last ones decide."""
_STEPS = 60  # of a training in the last rounds: after fewer, runs differ more than policies do


@dataclass(frozen=True)
class Effort:
    """Examples and folds of each round, and how many policies reach the last ones.

    Attributes
    ----------
    singles, built, final, last
        Examples of a fold: of single families, of policies, of leaders and recipes (and of the
        choice without its parts), and of those that contend at the end. The nearer to the planned
        number, the more like that training.
    finalists
        How many of the policies meet the recipes.
    contenders
        How many of these are tried again on other examples.
    folds
        How often, at least; more often where the data gives fewer examples than `last`, or where
        that leaves few of them to judge by.
    first_folds, part_folds
        How often single families, and a policy without each of its parts, are tried.
    strengths
        Whether each family is tried at several strengths in the first round; else at the middle
        one, and of two at the milder.
    planned
        Whether policies are tried with the planned network. The first round, which chooses what
        they are built from, always has a small one.
    cut
        Whether this is less work than was measured, to keep to a budget.
    """

    singles: int
    built: int
    final: int
    last: int
    finalists: int = 4
    contenders: int = 4
    folds: int = 1
    first_folds: int = 1
    part_folds: int = 1
    strengths: bool = True
    planned: bool = False
    cut: bool = False

    def examples(self, wanted: int, data: Dataset) -> int:
        """Return how many examples a fold has: at most three quarters of the data."""
        return max(2, min(wanted, len(data) * 3 // 4))

    def last_folds(self, data: Dataset) -> int:
        """Return how often contenders are tried again: until all examples were held out once."""
        used = self.examples(self.last, data)
        every = len(data) / (len(data) - used)
        return max(1, min(MOST_FOLDS, round(max(self.folds * self.last / used, every))))

    def work(self, data: Dataset) -> tuple[int, int]:
        """Return about how many examples networks are given in an epoch: first round, and later."""
        wanted = (self.singles, self.built, self.final, self.last)
        singles, built, final, last = (self.examples(size, data) for size in wanted)
        later = (
            (_BUILT + 2 * _REPLICAS) * built
            + (self.finalists + _RECIPES + _REPLICAS) * final
            + (self.contenders + _REPLICAS) * self.last_folds(data) * last
            + (_PARTS + _REPLICAS) * self.part_folds * final
        )
        first = _SINGLES if self.strengths else _FAMILIES
        return (first + _REPLICAS) * self.first_folds * singles, later


EFFORTS = {
    # a core is better spent on more examples than on more strengths, which come later, and on the
    # last rounds, where what is left differs by less than one run's noise
    "cpu": Effort(250, 180, 500, 800, folds=2, part_folds=2, strengths=False),
    # a GPU trains many small networks in hardly more time than a few: more of them, more often
    "cuda": Effort(
        448, 384, 1024, 2048, contenders=6, folds=2, first_folds=2, part_folds=4, planned=True
    ),
}
"""What keeps to 30 s on an H200, and to 5 minutes on two cores, for 5,000 images of 32 pixels."""

OWN = Effort(500, 250, 500, 800, planned=True)
"""For the user's own network, whose copies are trained one after the other."""


def side_of(data: Dataset, large: bool) -> int:
    """Return the side to which images are shrunk: 64 pixels if `large` and they are, else 32."""
    return 64 if large and max(data.shape[1:]) > _SMALL else 32


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
    budget, started, own
        As in `augury.forecasting.effort.choose_level`.

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
        other = measure_pace(data, sample, device, plan.network, side_of(data, large=True))
    else:
        other = small
    cores = 1 if device.type == "cuda" else torch.get_num_threads()

    def seconds(e: Effort) -> float:
        first, later = e.work(data)
        return (first * small * stand_in_epochs(plan) + later * other * plan.epochs) / cores

    spent = time.perf_counter() - started
    few = Schedule.batch * math.ceil(_STEPS / stand_in_epochs(plan))
    least = _FEWEST | {name: max(few, _FEWEST[name]) for name in ("final", "last")}
    while seconds(effort) > _SAFETY * budget - spent:
        sizes = {name: getattr(effort, name) for name in _FEWEST}
        fewer = {name: max(min(size, least[name]), size // 2) for name, size in sizes.items()}
        if fewer == sizes:
            raise AuguryError(
                f"a budget of {budget:g} s is too short for one search; give at least "
                f"{math.ceil(_AGAIN * (seconds(effort) + spent) / _SAFETY)} s"
            )
        effort = replace(effort, cut=True, **fewer)
    return effort
