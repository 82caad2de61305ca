"""How much work is chosen, with a pace that is made up."""

from __future__ import annotations

import inspect
import math
import re
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from augury._base.errors import AuguryError
from augury.augmentations import flips, rotation
from augury.data import as_dataset
from augury.forecasting import effort
from augury.forecasting.effort import LEVELS, choose_level, make_trial, measure_pace
from augury.forecasting.plan import TrainingPlan

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def images(count, side=8):
    x = np.random.default_rng(0).integers(0, 255, (count, side, side), np.uint8)
    return as_dataset(x, np.arange(count) % 2)


def test_levels_do_more_and_more():
    work = [level.examples * level.folds * level.share for level in LEVELS]
    assert work == sorted(work)
    assert [level.planned for level in LEVELS] == sorted(level.planned for level in LEVELS)
    assert all(level.replicas in (2, 3) for level in LEVELS)
    assert 0 < effort.DECIDES < effort.SUREST < effort.CPU < effort.GPU < len(LEVELS)


def test_the_page_names_the_levels_that_are_the_default():
    page = Path(__file__).parents[2] / "docs" / "ranking.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert (
        f"The default is {effort.CPU} on a CPU and {effort.GPU} on a GPU ({effort.GPU_MANY} for "
        f"plans of {effort._MANY:,} images or more), or {effort.OWN_CPU} and {effort.OWN} with "
        "your own network."
    ) in text
    first = next(k for k, level in enumerate(LEVELS) if level.planned)
    assert f"With `--effort {first}` or more, the trial trains the planned `cnn`, `resnet`" in text


def test_a_trial_of_enough_data():
    trial = make_trial(TrainingPlan(epochs=20), images(3000), 6)
    assert (trial.epochs, trial.examples, trial.folds, trial.replicas) == (20, 500, 2, 3)
    assert (trial.network, trial.side) == ("small", 32)
    assert make_trial(TrainingPlan(epochs=20), images(3000), 0).epochs == 5
    assert make_trial(TrainingPlan(epochs=1), images(3000), 0).epochs == 1


def test_what_data_lack_in_examples_folds_make_up():
    """Two thirds of 300 are 200: 1000 × 2 would be ten folds, and four are the most."""
    trial = make_trial(TrainingPlan(), images(300), 7)
    assert (trial.examples, trial.folds) == (200, 4)
    assert make_trial(TrainingPlan(), images(300), 5).folds == 2  # 500 / 200, rounded to even
    assert make_trial(TrainingPlan(), images(300), 4).folds == 1
    assert make_trial(TrainingPlan(), images(4), 7).examples == 2


def test_larger_plans_are_tried_on_more_examples_and_fewer_folds():
    """A tenth of the plan, as far as the work of the level allows; the planned network is like."""
    shapes = {n: make_trial(TrainingPlan(examples=n), images(3000), 5) for n in (1000, 4000, 9000)}
    found = {n: (trial.examples, trial.folds) for n, trial in shapes.items()}
    assert found == {1000: (250, 2), 4000: (400, 1), 9000: (500, 1)}
    assert make_trial(TrainingPlan(examples=50_000), images(6000), 9).examples == 2000


def test_few_examples_are_judged_by_fewer():
    held = [make_trial(TrainingPlan(), images(3000), level).held for level in (3, 5, 6)]
    assert held == [1000, 1800, 2500]


def test_the_planned_network_is_tried_from_level_eight():
    data = images(6000)
    assert make_trial(TrainingPlan(network="resnet"), data, 8).network == "resnet"
    assert make_trial(TrainingPlan(network="resnet"), data, 7).network == "slim"
    assert make_trial(TrainingPlan(network="theirs"), data, 8).network == "slim"
    assert make_trial(TrainingPlan(network="resnet"), data, 6).network == "small"
    large = make_trial(TrainingPlan(), images(40, 48), 8)
    assert (large.network, large.side) == ("cnn", 64)
    assert make_trial(TrainingPlan(), images(40, 40), 8).side == 32


def test_of_larger_images_fewer_are_tried_as_often():
    trial, rung = make_trial(TrainingPlan(), images(6000, 41), 9), LEVELS[9]
    assert (trial.side, trial.folds) == (64, rung.folds)
    assert trial.examples == round(rung.examples / 1.5)
    few = make_trial(TrainingPlan(), images(1029, 41), 9)
    assert (few.examples, few.folds) == (686, 4)  # 2 · 1,333 / 686


def seconds(level, data, candidates=2, pace=1e-4):
    return make_trial(TrainingPlan(), data, level).passes(candidates) * pace


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still, one core, and a pace of 0.1 ms."""
    monkeypatch.setattr(effort, "measure_pace", lambda *a, **k: 1e-4)
    monkeypatch.setattr(effort.time, "perf_counter", lambda: 100.0)
    monkeypatch.setattr(effort.torch, "get_num_threads", lambda: 1)


@pytest.mark.parametrize("level", [0, 3, 5, 6])
def test_the_highest_level_that_fits_is_chosen(level, clock):
    data, plan, candidates = images(3000), TrainingPlan(), [flips(), rotation(5)]
    budget = seconds(level, data) / 0.85
    for factor, chosen in ((1.001, level), (0.999, level - 1)):
        given = (plan, data, candidates, CPU, factor * budget, 100.0)
        if chosen >= 0:
            assert choose_level(*given) == chosen
        else:
            with pytest.raises(AuguryError, match="too short for 2 candidates"):
                choose_level(*given)


def test_time_that_is_spent_counts(clock):
    data, candidates = images(3000), [flips(), rotation(5)]
    budget = (seconds(5, data) + 3.0) / 0.85
    assert choose_level(TrainingPlan(), data, candidates, CPU, 1.001 * budget, 97.0) == 5
    assert choose_level(TrainingPlan(), data, candidates, CPU, 0.999 * budget, 97.0) == 4


def test_cores_share_the_work(clock, monkeypatch):
    data, candidates = images(3000), [flips(), rotation(5)]
    budget = seconds(5, data) / 2 / 0.85 * 1.001
    assert choose_level(TrainingPlan(), data, candidates, CPU, budget, 100.0) < 5
    monkeypatch.setattr(effort.torch, "get_num_threads", lambda: 2)
    assert choose_level(TrainingPlan(), data, candidates, CPU, budget, 100.0) == 5


def test_what_is_needed_is_said(clock):
    data, candidates = images(3000), [flips(), rotation(5)]
    needed = math.floor((seconds(0, data) + 2.0) / 0.85 + 0.5)
    with pytest.raises(AuguryError, match=f"a budget of 0.1 s is too short .* least {needed} s"):
        choose_level(TrainingPlan(), data, candidates, CPU, 0.1, 98.0)


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        (0, "for training without augmentation; give at least 4 s$"),
        (1, "for 1 candidate; give at least 4 s$"),
        (2, "for 2 candidates; give at least 4 s, or fewer candidates$"),
    ],
)
def test_candidates_are_counted(candidates, said):
    assert re.search(said, str(effort.too_short(0.1, 3.2, candidates)))


def test_where_nothing_changes_the_data_no_candidates_are_counted(clock):
    with pytest.raises(AuguryError, match="too short for training without augmentation"):
        choose_level(TrainingPlan(), images(3000), [], CPU, 0.01, 100.0)


def test_without_a_budget_the_device_decides():
    data = images(100)
    assert choose_level(TrainingPlan(), data, [flips()], CPU, None, 0.0) == 7
    assert choose_level(TrainingPlan(), data, [flips()], GPU, None, 0.0) == 9
    assert choose_level(TrainingPlan(examples=20_000), data, [flips()], GPU, None, 0.0) == 10
    assert choose_level(TrainingPlan(examples=19_999), data, [flips()], GPU, None, 0.0) == 9


def test_a_pace_is_seconds_per_example(monkeypatch):
    """With a clock that ticks once a call, 64 examples a step, and views of one candidate."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(effort.time, "perf_counter", lambda: float(next(ticks)))
    threads = torch.get_num_threads()
    pace = measure_pace(images(600), [flips()], CPU, steps=12)
    assert pace == pytest.approx(1 / 64 + 1 / 64)
    assert measure_pace(images(600), [flips()] * 4, CPU) == pytest.approx(1 / 64 + 1 / 4 / 64)
    assert torch.get_num_threads() == threads


def test_the_pace_of_few_examples():
    assert time.perf_counter() > 0
    assert 0 < measure_pace(images(12), [flips()], CPU, steps=2) < 1


def test_defaults_of_the_pace():
    given = {k: p.default for k, p in inspect.signature(measure_pace).parameters.items()}
    assert (given["network"], given["side"], given["batch"]) == ("small", 32, 64)
