"""One round of a search: what it trains, and what its learning curve is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_search import CPU, RATE, WORK, fold, images

import augury
from augury.forecasting.forecast import PLANNED, SMALL
from augury.forecasting.policy.rounds import Rounds


def test_a_round_takes_its_network_epochs_and_side_from_the_plan():
    plan = augury.TrainingPlan(epochs=3, network="resnet")
    large = Rounds(images(40, 48), plan, CPU, 0, replace(WORK, planned=True))
    tried = large._trial(20, planned=True, large=True)
    assert (tried.network, tried.side, tried.epochs, tried.examples) == ("resnet", 64, 3, 20)
    assert large._trial(20, planned=True, large=False).side == 32
    assert large._trial(20, planned=False, large=False).network == "small"
    assert large._trial(200, planned=True, large=True).examples == 26  # two thirds of 40
    for side, shown in ((40, 32), (41, 64)):
        one = Rounds(images(40, side), plan, CPU, 0, WORK)
        assert one._trial(20, planned=True, large=True).side == shown
    mine = replace(large, own=object())
    assert mine._trial(20, planned=True, large=True).side == 48
    assert mine._trial(20, planned=False, large=True).side == 64


def test_the_learning_curve_is_that_of_the_first_round_which_has_one():
    one = Rounds(images(), augury.TrainingPlan(), CPU, 0, WORK)
    assert one.rate is None
    one.forecast([fold([0.1])], 30)
    assert one.rate is None
    found = one.forecast([fold([0.1], (0.4,))], 30)
    assert one.rate == found.rate == pytest.approx(RATE)
    later = one.forecast([fold([0.1])], 30)
    assert later.rate == RATE
    fewer = Rounds(images(), augury.TrainingPlan(examples=60), CPU, 0, WORK, rate=0.5)
    assert fewer.forecast([fold([0.1])], 30).doublings == 1
    assert fewer.forecast([fold([0.1])], 30).calibration == SMALL
    planned = replace(fewer, effort=replace(WORK, planned=True))
    assert planned.forecast([fold([0.1])], 30).calibration == PLANNED
    assert planned.forecast([fold([0.1])], 30, planned=False).calibration == SMALL
