"""Trials of sound: how much work they do, and that views are seen in turn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import augury
from augury.augmentations import shift, snr_noise
from augury.forecasting import sound
from augury.forecasting.effort import Level, make_trial
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.sound import sound_trial
from augury.forecasting.training.members import Fold, Schedule, make_batches


def tones(n: int, speakers: int = 6):
    """Return noisy tones of two pitches from some speakers."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    time = np.arange(800) / 4000
    x = np.sin(2 * np.pi * np.where(y == 0, 300, 500)[:, None] * time) + rng.normal(size=(n, 800))
    return augury.as_dataset(x[:, None], y, rate=4000, groups=np.arange(n) // 2 % speakers)


@pytest.mark.parametrize(
    ("n", "speakers", "level", "examples", "folds"),
    [
        (60, 6, 7, 40, 6),  # twice each third of the speakers, at most
        (600, 3, 7, 400, 3),
        (600, 3, 9, 400, 6),
        (800, 4, 7, 300, 4),  # four speakers one by one
        (800, 4, 9, 533, 4),
        (6000, 6, 9, 800, 3),
        (600, 6, 3, 128, 1),
    ],
)
def test_each_part_of_the_speakers_is_held_out_as_often(n, speakers, level, examples, folds):
    trial = make_trial(TrainingPlan(), tones(n, speakers), level)
    assert (trial.examples, trial.folds, trial.network) == (examples, folds, "small")
    assert trial.epochs == 40


def test_without_speakers_there_are_four_folds_at_most():
    x = np.random.default_rng(0).normal(size=(90, 1, 100))
    data = augury.as_dataset(x, np.arange(90) % 2, rate=4000)
    trial = make_trial(TrainingPlan(), data, 9)
    assert (trial.examples, trial.folds) == (60, 4)


def test_constants_that_were_fitted_to_real_trainings():
    """A change of them needs ``benchmarks/predict_sound.py`` first."""
    found = sound.CALIBRATIONS["small"]
    assert (found.slope, found.floor, found.share) == (0.92, 0.103, 0.0)
    assert sound.MEASURED == {"small": 9}


@pytest.mark.parametrize(
    ("n", "speakers", "rung", "examples", "folds"),
    [
        (6, 3, Level(1000, 2), 4, 6),  # two thirds of six, and every speaker twice
        (4, 2, Level(1000, 2), 2, 4),  # two thirds of four, rounded down
        (600, 3, Level(500, 2), 200, 3),
        (6000, 3, Level(100, 1), 100, 1),
        (600, 3, Level(600, 5), 400, 3),  # four folds would hold one speaker out twice
        (600, 3, Level(100, 3), 60, 3),
        (600, 2, Level(500, 2), 300, 2),
    ],
)
def test_rungs_by_hand(n, speakers, rung, examples, folds):
    trial = sound_trial(TrainingPlan(epochs=10), tones(n, speakers), rung)
    assert (trial.examples, trial.folds) == (examples, folds)


def test_a_share_of_the_epochs_and_the_replicas_of_a_level():
    trial = sound_trial(TrainingPlan(epochs=10), tones(60), Level(64, 1, 0.25, 2))
    assert (trial.epochs, trial.replicas) == (2, 2)
    assert sound_trial(TrainingPlan(epochs=1), tones(60), Level(64, 1, 0.25)).epochs == 1


@pytest.mark.parametrize("views", [None, 2])
def test_views_are_seen_in_turn(views):
    data = tones(16)
    index = torch.arange(16)
    schedule = Schedule(epochs=4, batch=16, views=views)
    fold = Fold(index, index[:0], seed=0)
    found = make_batches(
        data, schedule, [snr_noise(0, 5), shift(0.2)], [fold], [], torch.device("cpu")
    )
    sums = [x.double().sum((0, 2, 3, 4)) for x, _ in found]  # an epoch each, whatever its order
    close = [torch.allclose(sums[k], sums[k + 2], rtol=1e-6) for k in range(2)]
    assert close == [views == 2] * 2
    assert not torch.allclose(sums[0], sums[1], rtol=1e-6)
