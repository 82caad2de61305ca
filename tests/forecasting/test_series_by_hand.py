"""How much work a trial of series does, level by level."""

from __future__ import annotations

import numpy as np
import pytest

from augury.data import as_dataset
from augury.forecasting.effort import Level
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.series import (
    CALIBRATIONS,
    LONGEST,
    MEASURED,
    TRUST,
    series_plan,
    series_trial,
)


def waves(count):
    return as_dataset(np.zeros((count, 1, 8)), np.linspace(0, 1, count), kind="series")


@pytest.mark.parametrize(
    ("count", "rung", "examples", "folds"),
    [
        (4000, Level(1000, 2), 500, 1),  # a small network: half of the work of one fold
        (4000, Level(1000, 2, network="planned"), 600, 1),  # three tenths of that of all folds
        (1000, Level(4000, 2, network="planned"), 750, 3),  # 2400 / 750, rounded
        (200, Level(5000, 4, network="planned"), 150, 16),  # 40 folds, sixteen at most
        (40, Level(64, 1), 30, 1),
        (4, Level(64, 1), 3, 11),
        (2, Level(64, 1), 2, 16),  # two examples at least
        (4000, Level(1001, 1), 500, 1),
    ],
)
def test_three_quarters_of_the_data_in_as_many_folds_as_the_work_fills(
    count, rung, examples, folds
):
    trial = series_trial(TrainingPlan(epochs=10), waves(count), rung)
    assert (trial.examples, trial.folds) == (examples, folds)


@pytest.mark.parametrize(
    ("count", "epochs"),
    [
        (40, 20),  # of 40 series 30 are tried: one batch of sixteen, where the plan has two
        (64, 13),  # of 64 series 48: three batches, where the plan has four
        (20, 10),  # one batch each
    ],
)
def test_epochs_make_the_steps_of_the_plan(count, epochs):
    trial = series_trial(TrainingPlan(epochs=10), waves(count), Level(640, 1))
    planned = min(count, round(trial.examples / 0.75))
    steps = max(1, planned // 16) / max(1, trial.examples // 16)
    assert trial.epochs == round(10 * steps)
    assert trial.epochs == epochs


def test_the_rest_of_a_trial():
    small = series_trial(TrainingPlan(epochs=10), waves(20), Level(64, 1, 0.25, 2))
    assert (small.epochs, small.network, small.side, small.replicas) == (2, "small", 256, 2)
    assert small.batch == 16
    assert series_trial(TrainingPlan(epochs=1), waves(20), Level(64, 1, 0.25)).epochs == 1
    planned = series_trial(TrainingPlan(epochs=10), waves(20), Level(64, 1, network="planned"))
    assert (planned.epochs, planned.network, planned.side) == (10, "fcn", 512)
    assert LONGEST == {False: 256, True: 512}


def test_a_plan_for_series():
    assert series_plan(TrainingPlan(epochs=7), epochs_given=False).epochs == 100
    assert series_plan(TrainingPlan(epochs=7), epochs_given=True).epochs == 7
    assert series_plan(TrainingPlan(), epochs_given=True).network == "fcn"


def test_constants_that_the_docs_name():
    assert set(CALIBRATIONS) == set(TRUST)
    assert set(TRUST) == {"fcn", "small"}


@pytest.mark.parametrize(
    ("network", "slope", "floor", "share", "level"),
    [("fcn", 1.37, 0.033, 0.0, 9), ("small", 1.2, 0.0147, 0.96, 7)],
)
def test_constants_that_were_fitted_to_real_trainings(network, slope, floor, share, level):
    """A change of them needs ``benchmarks/predict_series.py`` first."""
    found = CALIBRATIONS[network]
    assert (found.slope, found.floor, found.share) == (slope, floor, share)
    assert MEASURED[network] == level
