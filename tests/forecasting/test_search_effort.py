"""How much work a search for a policy does, with a pace that is made up."""

from __future__ import annotations

import math
from dataclasses import astuple, replace

import numpy as np
import pytest
import torch

import augury
from augury._base.errors import AuguryError
from augury.forecasting.forecast import QUICK, SMALL
from augury.forecasting.policy import effort
from augury.forecasting.policy.effort import Effort, choose_effort, stand_in_epochs
from augury.forecasting.policy.rounds import Rounds
from augury.forecasting.policy.space import RIVALS, Space
from augury.forecasting.policy.trust import trust
from augury.forecasting.trial import HeldOut

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def images(count, side=8):
    x = np.random.default_rng(0).integers(0, 255, (count, side, side), np.uint8)
    return augury.as_dataset(x, np.arange(count) % 10, max_examples=None)


def test_work_by_hand():
    """Networks of each round, with three replicas, and of the policies half of them again."""
    one = Effort(
        100, 200, 400, 500, finalists=5, contenders=6, folds=2, first_folds=3, part_folds=4
    )
    built, recipes, parts = effort._BUILT, effort._RECIPES, effort._PARTS
    assert one.work(images(3000)) == (
        (effort._SINGLES + 3) * 3 * 100,
        (built + 6) * 200 + (5 + recipes + 3) * 400 + (6 + 3) * 2 * 500 + (parts + 3) * 4 * 400,
    )
    plain = replace(one, strengths=False).work(images(3000))
    assert plain == ((effort._FAMILIES + 3) * 3 * 100, one.work(images(3000))[1])
    assert one.examples(400, images(300)) == 225
    assert one.examples(1, images(300)) == 2
    for count, folds in ((3000, 2), (1250, 2), (800, 3), (667, 4), (300, 4), (60, 4)):
        assert one.last_folds(images(count)) == folds
    assert replace(one, folds=1).last_folds(images(3000)) == 1


def test_efforts():
    cpu, gpu = effort.EFFORTS["cpu"], effort.EFFORTS["cuda"]
    assert (gpu.planned, cpu.planned, effort.OWN.planned) == (True, False, True)
    for one in (cpu, gpu, effort.OWN):
        assert all(getattr(one, name) >= least for name, least in effort._FEWEST.items())
        assert one.built <= one.final <= one.last
        few = (one.finalists, one.contenders) == (4, 4)
        assert few != (one is gpu)  # which trains a few more in hardly more time
    assert astuple(Effort(1, 2, 3, 5)) == (1, 2, 3, 5, 4, 4, 1, 1, 1, True, False, False)


def test_efforts_that_keep_to_their_time():
    """Measured for 5,000 images of 32 pixels; a change needs the time of a search again."""
    assert astuple(effort.EFFORTS["cpu"]) == (
        250,
        180,
        500,
        800,
        4,
        4,
        2,
        1,
        2,
        False,
        False,
        False,
    )
    assert astuple(effort.EFFORTS["cuda"]) == (
        448,
        384,
        1024,
        2048,
        4,
        6,
        2,
        2,
        4,
        True,
        True,
        False,
    )
    assert astuple(effort.OWN) == (500, 250, 500, 800, 4, 4, 1, 1, 1, True, True, False)
    assert (effort.MOST_FOLDS, effort.MOST_PARTS) == (4, 8)
    assert list(effort._FEWEST.values()) == [64, 64, 250, 250]


def test_networks_of_each_round_are_counted_about_right():
    """All that a search of colour images may try, and as many as it usually tries."""
    shape = (3, 32, 32)
    singles = Space().singles("image", shape)
    assert len(singles) == effort._SINGLES
    assert len(Space().singles("image", shape, strengths=False)) == effort._FAMILIES
    assert len(RIVALS) == effort._RECIPES - 2  # and the first leader, milder and stronger
    assert effort._BUILT == 46
    assert effort._PARTS == effort.MOST_PARTS == 8


@pytest.mark.parametrize(
    ("height", "width", "large"), [(40, 40, 32), (41, 8, 64), (8, 41, 64), (40, 8, 32)]
)
def test_the_longer_side_decides_whether_images_are_large(height, width, large):
    x = np.random.default_rng(0).integers(0, 255, (20, height, width), np.uint8)
    data = augury.as_dataset(x, np.arange(20) % 2)
    assert effort.side_of(data, large=True) == large
    assert effort.side_of(data, large=False) == 32


def test_fine_tuning_is_stood_in_for_by_longer_training():
    assert stand_in_epochs(augury.TrainingPlan(epochs=3)) == 3
    tuned = augury.TrainingPlan(epochs=3, pretrained=True)
    assert stand_in_epochs(tuned) == augury.TrainingPlan().epochs
    assert stand_in_epochs(replace(tuned, epochs=400)) == 400


sides: list[int] = []


@pytest.fixture
def pace(monkeypatch):
    """A pace of 0.02 s, two cores, and a clock that stands at 100 s."""
    asked = []
    sides.clear()

    def measure(data, sample, device, network="small", side=32):
        asked.append((len(sample), network))
        sides.append(side)
        return 0.02 if network == "small" else 0.06

    monkeypatch.setattr(effort, "measure_pace", measure)
    monkeypatch.setattr(effort, "measure_own_pace", lambda *_: 0.1)
    monkeypatch.setattr(effort.torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(effort.time, "perf_counter", lambda: 100.0)
    return asked


FULL = Effort(200, 160, 240, 400)


def sizes(one):
    return one.singles, one.built, one.final, one.last


def needed(one, other=0.02, epochs=1):
    first, later = one.work(images(3000))
    return (first * 0.02 + later * other) * epochs / 2


def test_a_budget_halves_the_examples(pace, monkeypatch):
    plan, data = augury.TrainingPlan(epochs=20), images(3000)
    monkeypatch.setitem(effort.EFFORTS, "cpu", FULL)
    assert choose_effort(data, plan, CPU, None, 0.0) == FULL
    assert not pace
    for factor, left in ((1.001, (200, 160, 240, 400)), (0.999, (100, 80, 240, 250))):
        budget = (3.0 + factor * needed(FULL, epochs=20)) / 0.85
        assert sizes(choose_effort(data, plan, CPU, budget, 97.0)) == left
    assert pace[0] == (6, "small")
    budget = 0.999 * needed(Effort(100, 80, 240, 250), epochs=20) / 0.85
    assert sizes(choose_effort(data, plan, CPU, budget, 100.0)) == (64, 64, 240, 250)
    least = (2.0 + needed(Effort(64, 64, 240, 250), epochs=20)) / 0.85
    with pytest.raises(AuguryError, match=f"give at least {math.ceil(1.15 * least)} s"):
        choose_effort(data, plan, CPU, least - 0.1, 98.0)
    assert choose_effort(data, plan, CPU, least + 0.1, 98.0).last == 250


@pytest.mark.parametrize(("epochs", "last"), [(1, 400), (9, 400), (10, 384), (15, 256), (20, 250)])
def test_few_epochs_leave_enough_examples_for_sixty_steps(pace, monkeypatch, epochs, last):
    plan, data = augury.TrainingPlan(epochs=epochs), images(3000)
    monkeypatch.setitem(effort.EFFORTS, "cpu", FULL)
    budget = 0.999 * needed(FULL, epochs=epochs) / 0.85
    assert sizes(choose_effort(data, plan, CPU, budget, 100.0)) == (100, 80, 240, last)


def test_what_a_budget_cuts_says_so(pace, monkeypatch):
    plan, data = augury.TrainingPlan(epochs=1), images(3000)
    monkeypatch.setitem(effort.EFFORTS, "cpu", FULL)
    for factor, cut in ((1.001, False), (0.999, True)):
        one = choose_effort(data, plan, CPU, factor * needed(FULL) / 0.85, 100.0)
        assert one.cut is cut
        made = Rounds(data, plan, CPU, 0, one, rate=0.2)
        folds = [HeldOut(torch.arange(100), *torch.full((2, 100, 2), 0.5).double(),
                         torch.tensor([0.5, 0.5]).double(), torch.tensor([]).double())]  # fmt: skip
        assert made.forecast(folds, 100).calibration == (QUICK if cut else SMALL)
    assert trust(True, False, True).startswith(trust(True, False))
    assert "less work than those" in trust(True, False, True)


def test_epochs_and_networks_take_their_time(pace, monkeypatch):
    data, twice = images(3000), augury.TrainingPlan(epochs=2)
    monkeypatch.setitem(effort.EFFORTS, "cpu", FULL)
    budget = needed(FULL, epochs=2) / 0.85
    assert choose_effort(data, twice, CPU, 1.001 * budget, 100.0) == FULL
    assert choose_effort(data, twice, CPU, 0.999 * budget, 100.0).singles == 100
    whole = replace(FULL, planned=True)
    monkeypatch.setitem(effort.EFFORTS, "cpu", whole)
    plan = augury.TrainingPlan(epochs=1)
    budget = needed(FULL, other=0.06) / 0.85
    assert choose_effort(data, plan, CPU, 1.001 * budget, 100.0) == whole
    assert choose_effort(data, plan, CPU, 0.999 * budget, 100.0).singles == 100
    assert pace[-1] == (6, "cnn")


def test_a_gpu_is_measured_with_many_networks_at_once(pace, monkeypatch):
    data, plan = images(3000, 48), augury.TrainingPlan(epochs=1, network="resnet")
    whole = replace(FULL, planned=True)
    monkeypatch.setitem(effort.EFFORTS, "cuda", whole)
    assert choose_effort(data, plan, GPU, None, 0.0) == whole
    budget = 2 * needed(FULL, other=0.06) / 0.85  # one GPU, whatever the cores
    assert choose_effort(data, plan, GPU, 1.001 * budget, 100.0) == whole
    assert choose_effort(data, plan, GPU, 0.999 * budget, 100.0).singles == 100
    assert pace == [(34, "small"), (34, "resnet")] * 2
    assert sides == [32, 64] * 2


def test_a_network_of_ones_own_is_measured_with_two_candidates(pace, monkeypatch):
    data, plan, seen = images(3000), augury.TrainingPlan(epochs=1), []
    monkeypatch.setattr(effort, "OWN", FULL)
    monkeypatch.setattr(effort, "measure_own_pace", lambda *given: seen.append(given) or 0.1)
    own = object()
    assert choose_effort(data, plan, CPU, None, 0.0, own) == FULL
    budget = needed(FULL, other=0.1) / 0.85
    assert choose_effort(data, plan, CPU, 1.001 * budget, 100.0, own) == FULL
    assert choose_effort(data, plan, CPU, 0.999 * budget, 100.0, own).singles == 100
    ((_, tried, device, network), _) = seen
    assert [repr(one) for one in tried] == ["rotation(15)", "trivial_augment(1)"]
    assert (device, network) == (CPU, own)


def test_what_just_fits_is_done(pace, monkeypatch):
    """With paces and shares that binary numbers hold exactly."""
    monkeypatch.setattr(effort, "measure_pace", lambda *_: 1 / 64)
    monkeypatch.setattr(effort, "_SAFETY", 0.5)
    monkeypatch.setitem(effort.EFFORTS, "cpu", FULL)
    exact = 2 * sum(FULL.work(images(3000))) / 64 / 2
    plan = augury.TrainingPlan(epochs=1)
    assert choose_effort(images(3000), plan, CPU, exact, 100.0) == FULL
    assert choose_effort(images(3000), plan, CPU, exact - 1 / 8, 100.0) != FULL
