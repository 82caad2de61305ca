"""Folds of few examples, and networks that make no error on them, as with small sets of series."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import augury
from augury.forecasting.forecast import Forecast
from augury.forecasting.training.members import Fold
from augury.forecasting.trial import HeldOut, summarise


def fold(rights, losses, start=0, size=7, replicas=(1.0, 1.0)):
    """So many right of `size`, at these losses, for no augmentation and for each candidate."""
    index = torch.arange(start, start + size)
    right = torch.stack([(torch.arange(size) < r).double() for r in rights], 1)
    level = torch.tensor(losses, dtype=torch.float64).expand(size, -1).clone()
    own = torch.tensor(replicas, dtype=torch.float64)
    return HeldOut(index, level, right, own, own[:0])


def make(*folds, pooled=True):
    return Forecast(
        list(folds), torch.arange(60) % 2, 2, trained=21, planned=21, pooled=pooled, rate=0.0
    )


def logit(p):
    return math.log(p / (1 - p))


def test_pooled_log_odds_are_those_of_the_mean_accuracy():
    folds = [fold([6, 5], [0.3, 0.4]), fold([4, 6], [0.5, 0.3], 7), fold([7, 6], [0.2, 0.4], 14)]
    found = make(*folds)
    mean = found.accuracy.mean(0)
    assert found.shift(0)[0] == pytest.approx(logit(float(mean[1])) - logit(float(mean[0])))
    links = found._links(found.accuracy)
    slope = 1 / float(mean[1] * (1 - mean[1]))
    steps = (found.accuracy[:, 1] - mean[1]) * slope
    torch.testing.assert_close(links[:, 1], math.log(mean[1] / (1 - mean[1])) + steps)
    apart = make(*folds, pooled=False)
    each = apart.accuracy.clamp(0.5 / 7, 1 - 0.5 / 7).logit()
    assert apart.shift(0)[0] == pytest.approx(float((each[:, 1] - each[:, 0]).mean()))


def test_one_wrong_of_seven_weighs_as_much_in_every_fold():
    """Log-odds of each fold would count it three times where the others are right."""
    near = [fold([7, 6], [0.1, 0.1]), fold([4, 4], [0.1, 0.1], 7)]
    far = [fold([7, 7], [0.1, 0.1]), fold([4, 3], [0.1, 0.1], 7)]
    assert make(*near).shift(0)[0] == pytest.approx(make(*far).shift(0)[0])
    assert make(*near, pooled=False).shift(0)[0] != pytest.approx(
        make(*far, pooled=False).shift(0)[0], rel=0.2
    )


def test_candidates_without_an_error_are_ordered_by_their_losses():
    found = make(*(fold([7, 7, 7, 6], [0.02, 0.01, 0.2, 0.3], 7 * k) for k in range(4)))
    moved = [found.shift(k)[0] for k in range(3)]
    assert moved[0] > 0 > moved[1] > moved[2]
    assert found.baseline.tried < 1 - 0.1 / 30  # 28 right of 28 do not show that all will be


def test_one_error_in_any_fold_is_an_error():
    right, wrong = fold([7, 6], [0.1, 0.1]), fold([6, 7], [0.1, 0.1], 7)
    assert make(right, fold([7, 6], [0.1, 0.1], 7)).baseline.faultless
    assert not make(right, wrong).baseline.faultless
    real = Forecast([right], torch.arange(60) / 7, None, trained=21, planned=21)
    assert not real.baseline.faultless  # a real target is never right


def test_what_no_error_shows_is_not_sure():
    found = make(*(fold([7, 7, 2], [0.01, 0.03, 2.0], 7 * k) for k in range(4)))
    assert found.shift(0)[1] == pytest.approx(math.pi / math.sqrt(6))
    assert not found.judge(0).clear
    assert found.shift(1)[1] < 1  # here errors were seen
    assert found.judge(1).clear


def test_replicas_count_alike_in_every_fold():
    """Their spread is taken at the mean accuracy, where a fold's own log-odds have no bounds."""
    calm = make(*(fold([5, 5], [0.4, 0.4], 7 * k, replicas=(0.7, 0.7)) for k in range(3)))
    wild = make(*(fold([5, 5], [0.4, 0.4], 7 * k, replicas=(1.0, 0.4)) for k in range(3)))
    tried = calm.baseline.tried
    scale = 1 / (tried * (1 - tried))
    prior = 4 * (0.02 * math.sqrt(tried * (1 - tried)) * scale) ** 2
    seen = 3 * 2 * (0.3 * scale) ** 2  # too much for the prior, which is then left out
    by_hand = [variance / 3 * 1.5 for variance in (prior / (4 + 3), seen / 3)]
    found = [forecast._run_noise()[0] ** 2 for forecast in (calm, wild)]
    assert found == pytest.approx(by_hand)


def test_losses_of_members_without_an_error_keep_their_order_below_a_bound():
    data = augury.as_dataset(np.zeros((6, 1, 8)), np.arange(6) % 2, kind="series")
    y = data.y
    sure = 4 * F.one_hot(y, 2).float()
    unsure = 0.5 * F.one_hot(y, 2).float()
    wrong = sure.clone()
    wrong[0] = wrong[0].flip(0)
    out = torch.stack([sure, unsure, wrong], 1)
    held = torch.arange(6)
    found = summarise(Fold(held, held, 0), out, out[:, :1], y, 1, data)
    own = [math.log(1 + math.exp(-4)), math.log(1 + math.exp(-0.5))]
    most = math.log(7 / 6)
    expected = [loss * most / (loss + most) for loss in own]
    assert found.losses.mean(0)[:2].tolist() == pytest.approx(expected, rel=1e-5)
    scaled = -(5 * math.log(5 / 6) + math.log(1 / 6)) / 6  # one of six wrong, at any confidence
    assert float(found.losses[:, 2].mean()) == pytest.approx(scaled, rel=1e-4)
    assert np.array_equal(found.right.mean(0), [1, 1, 5 / 6])
