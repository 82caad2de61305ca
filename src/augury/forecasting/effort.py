"""How much work a trial does: levels that double the work, and the one that time allows."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import identity
from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.series import series_trial
from augury.forecasting.sound import sound_trial
from augury.forecasting.training.grouped import ARCHITECTURES, RATES, Grouped
from augury.forecasting.training.members import Fold, Schedule, train_members
from augury.forecasting.training.own import OwnNetwork, OwnTrainer
from augury.forecasting.training.spectrogram import count_views, front_end
from augury.forecasting.trial import Trial, make_fold, shrink


@dataclass(frozen=True)
class Level:
    """A rung of the ladder of work.

    Attributes
    ----------
    examples
        How many each fold trains on.
    folds
        How often each candidate is trained.
    share
        Of the planned epochs.
    replicas
        Repetitions of training without augmentation in each fold.
    network
        What is trained on images: ``"planned"`` is the planned network, on up to 64 pixels. A
        ``"slim"`` one, on 32 pixels, costs a third of it or less, and is less like it; a
        ``"small"`` one still less, and it needs fewer examples.
    """

    examples: int
    folds: int
    share: float = 1.0
    replicas: int = 3
    network: str = "small"

    @property
    def planned(self) -> bool:
        """Whether the planned network is trained."""
        return self.network == "planned"


LEVELS = (
    Level(64, 1, 0.25, 2),
    Level(64, 1, 0.5, 2),
    Level(128, 1, 0.5, 2),
    Level(128, 1, replicas=2),
    Level(256, 1, replicas=2),
    Level(250, 2),
    Level(500, 2),
    Level(1000, 2, network="slim"),
    Level(1000, 2, network="planned"),
    Level(2000, 2, network="planned"),
    Level(4000, 2, network="planned"),
)
DECIDES = 3
"""The first level that keeps to the planned epochs; below it no verdict is given."""

SUREST = 5
"""The first level whose verdicts were right in 95 % of comparisons with real training or more;
below it a verdict is "probably" at most."""

CPU, GPU, GPU_MANY = 7, 9, 10
"""Levels where no budget and no level is given; the last for plans of many examples."""

OWN_CPU, OWN = 4, 9
"""The same for the user's own network, which is trained alone and takes longer."""

_MANY = 20_000  # planned examples: folds of 2,000 order candidates less well than those of 4,000
_SAFETY = 0.85  # of the budget: steps vary in time
_MOST_SHARE = 2 / 3  # of the data that a fold may train on
_LEAST_SHARE = 0.1  # of the plan: a small network on less is too unlike, and one fold is better
_SMALL = 40  # pixels: larger images are tried at 64 pixels where the planned network is
# Images of 64 pixels take three times as long: so many times fewer examples are tried.
_LARGER = 1.5


def make_trial(plan: TrainingPlan, data: Dataset, level: int, own: bool = False) -> Trial:
    """Return the trial of a level for planned training on this data.

    With `own`, a network of the user's own is trained at every level, on images as they are.
    """
    rung = LEVELS[level]
    if data.kind == "series" and not own:
        return series_trial(plan, data, rung)
    if data.kind == "sound" and not own:
        return sound_trial(plan, data, rung)
    planned = rung.planned and data.kind == "image" and plan.network in ARCHITECTURES
    stand_in = "slim" if rung.network != "small" and data.kind == "image" else "small"
    sides = (plan.side or 0, *data.shape[1:])
    large = planned and not own and max(sides) > _SMALL
    most = round(rung.examples / _LARGER) if large else rung.examples
    work = most * rung.folds
    examples = max(2, min(most, int(len(data) * _MOST_SHARE)))
    if not rung.planned and not own:
        like = int((plan.examples or data.total) * _LEAST_SHARE)
        examples = max(examples, min(work, like, int(len(data) * _MOST_SHARE)))
    folds = rung.folds
    if examples != most:  # what is not done in examples, folds make up
        folds = min(4, max(1, round(work / examples)))
    return Trial(
        epochs=max(1, round(plan.epochs * rung.share)),
        examples=examples,
        folds=folds,
        network=plan.network if planned or own else stand_in,
        replicas=rung.replicas,
        held=Trial.held_for(examples),
        side=max(data.shape[1:], default=1) if own else 64 if large else 32,
    )


def choose_level(
    plan: TrainingPlan,
    data: Dataset,
    candidates: Sequence[Augmentation],
    device: torch.device,
    budget: float | None,
    started: float,
    own: OwnNetwork | None = None,
) -> int:
    """Return the highest level that fits into the budget, from the time that a few steps take.

    Parameters
    ----------
    plan, data, candidates, device
        What is to be tried, and where.
    budget
        Seconds, counted from `started`; None for the default level of the device.
    started
        When counting began, by `time.perf_counter`.
    own
        The user's own network, where that is trained.

    Raises
    ------
    AuguryError
        If not even the lowest level fits; the message says how long that takes.
    """
    if budget is None:
        if device.type != "cuda":
            return OWN_CPU if own else CPU
        many = data.kind == "image" and (plan.examples or data.total) >= _MANY
        return OWN if own else GPU_MANY if many else GPU
    cores = 1 if device.type == "cuda" or own else torch.get_num_threads()
    paces: dict[tuple[str, int], float] = {}
    chosen, seconds, spent = None, 0.0, 0.0
    for level in range(len(LEVELS)):
        trial = make_trial(plan, data, level, own is not None)
        kind = (trial.network, trial.side)
        if kind not in paces and own is not None:
            paces[kind] = measure_own_pace(data, candidates, device, own)
        elif kind not in paces:
            paces[kind] = measure_pace(
                data, candidates, device, *kind, batch=trial.batch, epochs=trial.epochs
            )
        seconds = trial.passes(len(candidates)) * paces[kind] / cores
        spent = time.perf_counter() - started
        if seconds > budget * _SAFETY - spent:
            break
        chosen = level
    if chosen is None:
        raise too_short(budget, (seconds + spent) / _SAFETY, len(candidates))
    return chosen


def too_short(budget: float, needed: float, candidates: int) -> AuguryError:
    """Return the error for a budget in which nothing can be tried."""
    what = f"{candidates} candidate{'s' if candidates > 1 else ''}"
    return AuguryError(
        f"a budget of {budget:g} s is too short for "
        f"{what if candidates else 'training without augmentation'}; give at least "
        f"{math.ceil(needed)} s{', or fewer candidates' if candidates > 1 else ''}"
    )


def measure_pace(
    data: Dataset,
    candidates: Sequence[Augmentation],
    device: torch.device,
    network: str = "small",
    side: int = 32,
    steps: int = 12,
    batch: int = 64,
    epochs: int = 1,
) -> float:
    """Return seconds per example and network, with the mean cost of the candidates' views.

    Views that are seen in several of the `epochs` cost less in each.
    """
    size = min(64 * 4, len(data) // 2)
    data, candidates = shrink(data.subsample(4 * size, 0), candidates, side)
    fold = make_fold(data, Trial(epochs=1, examples=size, folds=1), 0, 0)
    outputs = data.outputs
    threads = torch.get_num_threads()
    schedule = Schedule(max(2, steps * batch // max(batch, size)), batch, rate=RATES[network])

    def seconds(chosen: Sequence[Augmentation], clean: Sequence[Fold]) -> float:
        net = Grouped(network, max(1, len(chosen)), front_end(data).shape, outputs, 0).to(device)
        times: list[float] = []
        train_members(
            net, data, schedule, chosen, [fold] if chosen else [], clean,
            lambda: times.append(time.perf_counter()),
        )  # fmt: skip
        if device.type == "cuda":
            torch.cuda.synchronize()
            times[-1] = time.perf_counter()  # steps are done some time after they are begun
        return (times[-1] - times[0]) / max(1, len(times) - 1)

    try:
        if device.type == "cpu":
            torch.set_num_threads(1)  # as each candidate will have
        step = seconds([], [fold])
        if device.type == "cuda":
            many = max(1, len(candidates))
            return seconds([identity()] * many, []) / min(batch, size) / many
        x = data.batch(fold.train[: min(64, size)], device, torch.float32)
        rng = Rng(0, torch.arange(len(x)))
        begun = time.perf_counter()
        for candidate in candidates:
            candidate.views(x, 1, rng)
        views = (time.perf_counter() - begun) / max(1, len(candidates)) / len(x)
        made = count_views(data, device) or epochs
        return step / min(batch, size) + views * min(1.0, made / epochs)
    finally:
        torch.set_num_threads(threads)


def measure_own_pace(
    data: Dataset, candidates: Sequence[Augmentation], device: torch.device, own: OwnNetwork
) -> float:
    """Return seconds per example of training the user's own network with a candidate."""
    size = min(64 * 3, len(data) // 2)
    fold = make_fold(data, Trial(epochs=1, examples=size, folds=1, held=2), 0, 0)
    trainer = OwnTrainer(own, data, Schedule(2, rate=own.rate), device)
    tried = candidates or [identity()]
    trainer.run(tried[0], fold)  # libraries choose their kernels, a graph is captured
    begun = time.perf_counter()
    trainer.run(tried[-1], fold)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begun) / (2 * size)
