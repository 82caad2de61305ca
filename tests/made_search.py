"""Made-up trials, from which the search for a policy is followed by hand."""

from __future__ import annotations

import numpy as np
import torch

import augury
from augury.forecasting.forecast import SMALL, Forecast
from augury.forecasting.policy.effort import Effort
from augury.forecasting.policy.rounds import Rounds
from augury.forecasting.policy.search import _Search
from augury.forecasting.policy.space import Space
from augury.forecasting.trial import HeldOut

CPU = torch.device("cpu")
SIZE = 200
WORK = Effort(20, 30, 40, 50, finalists=2, contenders=2, folds=2, part_folds=2)


def images(count=SIZE, side=8):
    x = np.random.default_rng(0).integers(0, 255, (count, side, side), np.uint8)
    return augury.as_dataset(x, np.arange(count) % 10, max_examples=None)


def fold(gains, half=(), base=0.5, loss=1.2):
    """A fold in which half of the examples are right without augmentation."""
    index = torch.arange(SIZE)
    right = torch.stack([(index < round((base + g) * SIZE)).double() for g in (0.0, *gains)], 1)
    losses = torch.full(right.shape, loss, dtype=torch.float64)
    reals = [torch.tensor(v, dtype=torch.float64) for v in ((base, base), half)]
    return HeldOut(index, losses, right, *reals)


def forecast(folds, trained, rate=None, calibration=SMALL):
    return Forecast(
        folds, images().y, 10, trained=trained, planned=SIZE, rate=rate, calibration=calibration
    )


def searching(always=(), never=()):
    """Return a search that has not begun."""
    made = Rounds(images(), augury.TrainingPlan(), CPU, 3, WORK)
    return _Search(made, Space.of(always, never), [])


RATE = forecast([fold([], (0.4,))], 30).rate
