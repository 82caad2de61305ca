"""How much work a search for a policy does, with a pace that is made up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import augury
from augury._base.errors import AuguryError
from augury.forecasting.policy import effort
from augury.forecasting.policy.effort import Effort, choose_effort, stand_in_epochs

CPU = torch.device("cpu")


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
        (built + 6) * 200 + (5 + recipes + 3) * 400 + (6 + 3) * 2 * 500 + (parts + 3) * 4 * 200,
    )
    plain = replace(one, strengths=False).work(images(3000))
    assert plain == ((effort._FAMILIES + 3) * 3 * 100, one.work(images(3000))[1])
    assert one.examples(400, images(300)) == 200
    assert one.examples(1, images(300)) == 2
    for count, folds in ((3000, 2), (750, 2), (500, 3), (375, 4), (60, 4)):
        assert one.last_folds(images(count)) == folds
    assert replace(one, folds=1).last_folds(images(3000)) == 1


def test_efforts():
    cpu, gpu = effort.EFFORTS["cpu"], effort.EFFORTS["cuda"]
    assert (gpu.planned, cpu.planned, effort.OWN.planned) == (True, False, True)
    for one in (cpu, gpu, effort.OWN):
        assert one.singles >= effort._FEWEST
        assert one.built <= one.final <= one.last
        few = (one.finalists, one.contenders, one.folds) == (4, 4, 1)
        assert few != (one is gpu)  # which trains a few more in hardly more time
    assert Effort(1, 1, 1, 1).first_folds == Effort(1, 1, 1, 1).part_folds == 1
    assert not Effort(1, 1, 1, 1).planned


def test_fine_tuning_is_stood_in_for_by_longer_training():
    assert stand_in_epochs(augury.TrainingPlan(epochs=3)) == 3
    tuned = augury.TrainingPlan(epochs=3, pretrained=True)
    assert stand_in_epochs(tuned) == augury.TrainingPlan().epochs
    assert stand_in_epochs(replace(tuned, epochs=400)) == 400


@pytest.fixture
def pace(monkeypatch):
    """A pace of 0.02 s, two cores, and a clock that stands at 100 s."""
    asked = []

    def measure(data, sample, device, network="small", side=32):
        asked.append((len(sample), network))
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
    plan, data = augury.TrainingPlan(epochs=1), images(3000)
    monkeypatch.setitem(effort.EFFORTS, "cpu", FULL)
    assert choose_effort(data, plan, CPU, None, 0.0) == FULL
    assert not pace
    for factor, left in ((1.001, (200, 160, 240, 400)), (0.999, (100, 80, 120, 200))):
        budget = (3.0 + factor * needed(FULL)) / 0.85
        assert sizes(choose_effort(data, plan, CPU, budget, 97.0)) == left
    assert pace[0] == (6, "small")
    budget = 0.999 * needed(Effort(100, 80, 120, 200)) / 0.85
    assert sizes(choose_effort(data, plan, CPU, budget, 100.0)) == (64, 64, 64, 100)
    least = (2.0 + needed(Effort(64, 64, 64, 100))) / 0.85
    with pytest.raises(AuguryError, match=f"give at least {least:.0f} s"):
        choose_effort(data, plan, CPU, least - 0.1, 98.0)
    assert choose_effort(data, plan, CPU, least + 0.1, 98.0).last == 100


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
