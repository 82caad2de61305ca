"""One round of a search: what it trains, and what its learning curve is."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from made_search import CPU, RATE, WORK, fold, images

import augury
from augury.augmentations import parse
from augury.forecasting.forecast import PLANNED, SMALL
from augury.forecasting.policy import rounds
from augury.forecasting.policy.effort import EFFORTS
from augury.forecasting.policy.journal import RoundJournal
from augury.forecasting.policy.rounds import Rounds
from augury.forecasting.trial import make_fold

FLIPS = parse("flips")


def test_a_round_takes_its_network_epochs_and_side_from_the_plan():
    plan = augury.TrainingPlan(epochs=3, network="resnet")
    large = Rounds(images(40, 48), plan, CPU, 0, replace(WORK, planned=True))
    tried = large._trial(20, planned=True, large=True)
    assert (tried.network, tried.side, tried.epochs, tried.examples) == ("resnet", 64, 3, 20)
    assert large._trial(20, planned=True, large=False).side == 32
    assert large._trial(20, planned=False, large=False).network == "small"
    assert large._trial(200, planned=True, large=True).examples == 30  # three quarters of 40
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


def tall(height, width, count=40):
    x = np.random.default_rng(0).integers(0, 255, (count, height, width), np.uint8)
    return augury.as_dataset(x, np.arange(count) % 2)


@pytest.fixture
def asked(monkeypatch):
    """What the trials of rounds are asked, which are made up."""
    found = []

    def run_folds(data, fitted, trial, numbers, **options):
        found.append({"data": data, "fitted": fitted, "trial": trial, **options})
        for candidate in fitted:
            options["tick"](repr(candidate))
        return [fold([0.1] * len(fitted))] * len(numbers)

    monkeypatch.setattr(rounds, "run_folds", run_folds)
    return found


def test_folds_have_numbers_and_held_out_examples_of_their_own():
    assert (rounds.SINGLES, rounds.BUILT, rounds.FINAL, rounds.LAST) == (0, 2, 3, 4)
    one = Rounds(images(3000), augury.TrainingPlan(epochs=5), CPU, 0, WORK)
    held = {used: one._trial(used, False, False).held for used in (100, 166, 167, 300, 1000)}
    assert held == {100: 1000, 166: 1000, 167: 1002, 300: 1800, 1000: 2500}
    assert one._trial(100, False, False).folds == 8
    tuned = replace(one, plan=augury.TrainingPlan(epochs=5, pretrained=True))
    assert tuned._trial(100, False, False).epochs == 40  # a small network starts from nothing
    assert tuned._trial(100, True, False).epochs == 5


def test_contenders_of_a_small_set_are_judged_by_each_example_once():
    one = Rounds(images(400), augury.TrainingPlan(epochs=5), CPU, 0, EFFORTS["cuda"])
    trial = one._trial(one.effort.last, True, True)
    count = one.effort.last_folds(one.data)
    numbers = [rounds.LAST + k * (rounds.PLACES // count) for k in range(count)]
    held = torch.cat([make_fold(one.data, trial, 0, number).held for number in numbers])
    assert sorted(held.tolist()) == list(range(400))


def test_what_a_round_trains_unless_told_otherwise(asked):
    own, plan = object(), augury.TrainingPlan(epochs=5, network="resnet")
    one = Rounds(tall(64, 48), plan, CPU, 3, replace(WORK, planned=True), own)
    one.run("a", [FLIPS], 20, [2])
    one.run("b", [FLIPS], 20, [2], planned=False, large=True)
    one.run("c", [FLIPS], 20, [2], large=True, curve=True, epochs=2)
    trials = [(now["trial"].network, now["trial"].side, now["trial"].epochs) for now in asked]
    assert trials == [("resnet", 64, 5), ("small", 32, 5), ("resnet", 64, 2)]
    assert [now["own"] for now in asked] == [own, None, own]
    assert [now["curve"] for now in asked] == [False, False, True]
    small = replace(one, own=None)
    small.run("d", [FLIPS], 20, [2])
    small.run("e", [FLIPS], 20, [2], large=True)
    assert [now["trial"].side for now in asked[3:]] == [32, 64]
    frugal = replace(one, effort=WORK)  # which allows a small network only
    frugal.run("f", [FLIPS], 20, [2], large=True)
    assert (asked[-1]["trial"].network, asked[-1]["trial"].side) == ("small", 32)
    assert asked[-1]["own"] is None


@pytest.mark.parametrize("shape", [(64, 48), (48, 64)])
def test_candidates_are_scaled_by_the_longer_side(asked, shape):
    one = Rounds(tall(*shape), augury.TrainingPlan(), CPU, 0, WORK)
    one.run("a", [parse("blur(1,3)"), FLIPS], 20, [0])
    assert [repr(fitted) for fitted in asked[0]["fitted"]] == ["blur(0.5,1.5)", "flips"]
    assert asked[0]["data"].shape == (1, *(side // 2 for side in shape))
    same = Rounds(tall(32, 24), augury.TrainingPlan(), CPU, 0, WORK)
    same.run("a", [parse("blur(1,3)")], 20, [0])
    assert [repr(fitted) for fitted in asked[1]["fitted"]] == ["blur(1,3)"]


def test_work_is_counted_in_examples_of_networks(asked):
    seen = []
    one = Rounds(
        images(), augury.TrainingPlan(), CPU, 0, WORK, progress=lambda *now: seen.append(now)
    )
    assert (one.done, one.total) == (0, 0)
    one.run("a", [FLIPS, parse("invert")], 20, [0, 1])
    assert one.done == 2 * (2 + 3) * 20
    assert seen == [(20, 200, "a: flips"), (40, 200, "a: invert")]  # of what is known to come
    one.total = 1000
    one.run("b", [FLIPS], 30, [2], curve=True)
    assert one.done == 200 + (1 + 6) * 30
    assert seen[2:] == [(230, 1000, "b: flips")]


@pytest.mark.parametrize("remote", [False, True])
def test_only_workers_elsewhere_keep_their_jobs(asked, remote, tmp_path):
    journal = RoundJournal.open(tmp_path / "rounds.npz", {})
    one = Rounds(images(), augury.TrainingPlan(), CPU, 0, WORK, journal=journal,
                 workers=SimpleNamespace(remote=remote))  # fmt: skip
    one.run("a", [FLIPS], 20, [0])
    assert (asked[0]["journal"] is not None) is remote
    one.run("a", [FLIPS], 20, [0])
    assert len(asked) == 1  # a round that is known is not run again
    assert len(one.path) == 2


def test_seconds_of_a_round_have_one_digit(asked, monkeypatch):
    times = iter([100.0, 101.26])
    monkeypatch.setattr(time, "perf_counter", lambda: next(times, 200.0))
    one = Rounds(images(), augury.TrainingPlan(), CPU, 0, WORK)
    one.run("a", [FLIPS], 20, [0])
    assert one.path[0]["seconds"] == 1.3
