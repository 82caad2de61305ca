"""Trials of series: how much work they do, and that they learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import augury
from augury.augmentations import jitter
from augury.forecasting.effort import make_trial
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.series import series_plan
from augury.forecasting.trial import Trial, run_folds, shrink


def waves(n: int, length: int, channels: int = 1, seed: int = 0):
    """Two classes that differ in the width of a bump, anywhere."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    time = np.linspace(0, 1, length)
    centre = rng.uniform(0.3, 0.7, size=(n, channels, 1))
    width = np.where(y == 0, 0.05, 0.2)[:, None, None]
    x = np.exp(-(((time - centre) / width) ** 2)) + 0.2 * rng.normal(size=(n, channels, length))
    return augury.as_dataset(x, y, kind="series", name="waves")


@pytest.mark.parametrize(
    ("n", "folds", "epochs"),
    [(20, 16, 100), (36, 16, 200), (67, 16, 133), (300, 5, 129), (4000, 1, 133)],
)
def test_small_sets_get_many_folds_with_the_steps_of_the_plan(n, folds, epochs):
    data = waves(n, 30)
    plan = series_plan(TrainingPlan(), epochs_given=False)
    for level in (4, 7, 9):
        trial = make_trial(plan, data, level)
        assert trial.batch == 16
        assert trial.examples <= n * 3 // 4
        assert 1 <= trial.folds <= 16
    trial = make_trial(plan, data, 9)
    assert (trial.network, trial.folds, trial.epochs) == ("fcn", folds, epochs)
    if n < 1000:
        steps = trial.epochs * max(1, trial.examples // 16)
        assert steps == pytest.approx(100 * (n // 16), rel=0.01)


def test_epochs_that_are_given_are_kept():
    assert series_plan(TrainingPlan(epochs=7), epochs_given=True).epochs == 7


def test_long_series_are_averaged_down():
    data = waves(8, 1000)
    short, candidates = shrink(data, [jitter(0.1)], 256)
    assert short.shape == (1, 256)
    assert candidates == [jitter(0.1)]
    assert float((short.x.mean(-1) - data.x.mean(-1)).abs().max()) < 0.01
    assert shrink(data, [], 1000)[0] is data


@pytest.mark.parametrize("network", ["small", "fcn"])
def test_a_trial_learns_a_simple_difference(network):
    data = waves(60, 40, channels=2)
    trial = Trial(20, 45, 1, network, replicas=2, batch=16)
    (fold,) = run_folds(data, [jitter(0.1)], trial, [0], seed=0, device=torch.device("cpu"))
    assert float(fold.right[:, 0].mean()) > 0.85


def test_the_plan_says_what_was_assumed():
    found = augury.rank(waves(24, 16), augmentations=["jitter(0.1)"], effort=0)
    assert found.plan["network"] == "fcn"
    assert found.plan["epochs"] == 100
    assert "epochs" in found.plan["assumed"]
    given = augury.rank(waves(24, 16), augmentations=["jitter(0.1)"], effort=0, epochs=12)
    assert given.plan["epochs"] == 12
    assert "epochs" not in given.plan["assumed"]


def test_labelled_series_are_given_verdicts_and_trust():
    found = augury.rank(waves(40, 16), augmentations=["jitter(0.1)"], epochs=5, effort=4)
    assert not found.warnings
    assert "eight sets of series" in found.trust
    x = np.random.default_rng(0).normal(size=(24, 1, 16))
    real = augury.rank(x, x.mean((1, 2)), ["jitter(0.1)"], kind="series", effort=0)
    assert any("not checked" in warning for warning in real.warnings)
