"""Levels of work, and the pace of training, with networks and a clock that are made up."""

from __future__ import annotations

from dataclasses import astuple, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from augury.augmentations import identity
from augury.data import as_dataset
from augury.forecasting import effort
from augury.forecasting.effort import (
    LEVELS,
    Level,
    choose_level,
    make_trial,
    measure_own_pace,
    measure_pace,
)
from augury.forecasting.plan import TrainingPlan

CPU, GPU = torch.device("cpu"), torch.device("cuda")
PLAN = TrainingPlan(epochs=10)


def images(count, *shape):
    x = np.random.default_rng(0).integers(0, 255, (count, *(shape or (8, 8))), np.uint8)
    return as_dataset(x, np.arange(count) % 2)


def table(count):
    return as_dataset(np.random.default_rng(0).normal(size=(count, 3)), np.arange(count) % 2)


def waves(count, **options):
    x = np.random.default_rng(0).normal(size=(count, 1, 16))
    return as_dataset(x, np.arange(count) % 2, **options)


def test_levels_that_forecasts_were_checked_at():
    """A change of them needs ``benchmarks/predict.py`` first."""
    assert [astuple(level) for level in LEVELS] == [
        (64, 1, 0.25, 2, "small"),
        (64, 1, 0.5, 2, "small"),
        (128, 1, 0.5, 2, "small"),
        (128, 1, 1.0, 2, "small"),
        (256, 1, 1.0, 2, "small"),
        (250, 2, 1.0, 3, "small"),
        (500, 2, 1.0, 3, "small"),
        (1000, 2, 1.0, 3, "slim"),
        (1000, 2, 1.0, 3, "planned"),
        (2000, 2, 1.0, 3, "planned"),
        (4000, 2, 1.0, 3, "planned"),
    ]
    assert astuple(Level(7, 5)) == (7, 5, 1.0, 3, "small")
    assert next(k for k, level in enumerate(LEVELS) if level.share == 1) == effort.DECIDES
    assert LEVELS[effort.SUREST].examples > LEVELS[effort.DECIDES].examples
    assert (effort.DECIDES, effort.SUREST) == (3, 5)


@pytest.mark.parametrize("level", [0, 5, 9])
def test_a_network_of_ones_own_sees_data_as_they_are(level):
    for data, side in (
        (images(3000, 48, 8), 48),
        (images(3000, 8, 48), 48),
        (waves(3000, kind="series"), 16),
        (waves(3000, kind="sound", rate=4000), 16),
        (table(3000), 1),
    ):
        trial = make_trial(replace(PLAN, network="mine", examples=50_000), data, level, own=True)
        assert (trial.network, trial.side, trial.batch) == ("mine", side, 64)
        assert trial.examples == LEVELS[level].examples  # no more for large plans
        assert trial.folds == LEVELS[level].folds


def test_series_and_sound_have_trials_of_their_own():
    assert make_trial(PLAN, waves(3000, kind="series"), 9).network == "fcn"
    assert make_trial(PLAN, waves(3000, kind="series"), 9).batch == 16
    sound = make_trial(PLAN, waves(3000, kind="sound", rate=4000), 9)
    assert (sound.network, sound.examples, sound.folds) == ("small", 2000, 1)
    assert make_trial(PLAN, table(3000), 9).network == "small"


@pytest.mark.parametrize(
    ("shape", "side", "level", "tried"),
    [
        ((8, 8), None, 9, 32),
        ((41, 8), None, 9, 64),
        ((8, 41), None, 9, 64),
        ((8, 8), 64, 9, 64),  # the plan is for larger images than these
        ((8, 8), 40, 9, 32),
        ((41, 41), 64, 7, 32),  # a small network sees small images
    ],
)
def test_large_images_are_tried_large(shape, side, level, tried):
    trial = make_trial(replace(PLAN, side=side), images(6000, *shape), level)
    assert trial.side == tried
    assert trial.examples == (1333 if tried == 64 else LEVELS[level].examples)


def test_examples_that_are_not_read_count_for_the_plan():
    data = replace(images(900), available=30_000)
    assert choose_level(PLAN, data, [identity()], GPU, None, 0.0) == 10
    assert choose_level(PLAN, replace(data, available=19_999), [identity()], GPU, None, 0.0) == 9
    assert make_trial(PLAN, replace(data, available=4000), 5).examples == 400  # a tenth of them


def test_the_level_where_nothing_is_asked_for():
    many = replace(PLAN, examples=50_000)
    for data in (table(20), waves(20, kind="series"), waves(20, kind="sound", rate=4000)):
        assert choose_level(many, data, [], GPU, None, 0.0) == 9
        assert choose_level(many, data, [], CPU, None, 0.0) == 7
    own = SimpleNamespace()
    assert choose_level(many, images(20), [], CPU, None, 0.0, own) == 4
    assert choose_level(many, images(20), [], GPU, None, 0.0, own) == 9


@pytest.fixture
def paces(monkeypatch):
    """A clock that stands at 100 s, four cores, and paces that binary numbers hold exactly."""
    asked = []

    def measure(data, candidates, device, network, side, batch, epochs):
        asked.append((network, side, batch, epochs))
        return {"small": 1 / 4096, "slim": 1 / 2048, "cnn": 1 / 1024}[network]

    monkeypatch.setattr(effort, "measure_pace", measure)
    monkeypatch.setattr(effort, "measure_own_pace", lambda *_: asked.append("own") or 1 / 256)
    monkeypatch.setattr(effort.time, "perf_counter", lambda: 100.0)
    monkeypatch.setattr(effort.torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(effort, "_SAFETY", 0.5)
    return asked


@pytest.mark.parametrize(("device", "cores"), [(CPU, 4), (GPU, 1)])
def test_what_just_fits_is_done(paces, device, cores):
    data, candidates = images(6000), [identity()] * 3
    for level in (0, 4, 7, 9):
        pace = 1 / 4096 if level < 7 else 1 / 2048 if level < 8 else 1 / 1024
        seconds = make_trial(PLAN, data, level).passes(3) * pace / cores
        for budget, chosen in ((2 * seconds + 8, level), (2 * seconds + 7.999, level - 1)):
            if chosen >= 0:
                assert choose_level(PLAN, data, candidates, device, budget, 96.0) == chosen
    paces.clear()
    assert choose_level(PLAN, data, candidates, device, 1e9, 96.0) == 10
    # each network once
    assert paces == [("small", 32, 64, 2), ("slim", 32, 64, 10), ("cnn", 32, 64, 10)]


def test_a_network_of_ones_own_is_measured_once_and_has_all_cores(paces):
    data, own = images(6000), SimpleNamespace()
    plan = replace(PLAN, network="mine")
    for level in (0, 5, 9):
        seconds = make_trial(plan, data, level, own=True).passes(1) / 256
        given = (plan, data, [identity()], CPU)
        assert choose_level(*given, 2 * seconds, 100.0, own) == level
        if level:
            assert choose_level(*given, 1.999 * seconds, 100.0, own) == level - 1
    assert paces == ["own"] * 5


class Clock:
    """Moves only when it is told to."""

    def __init__(self):
        self.now, self.seen = 50.0, []

    def __call__(self):
        return self.now

    def move(self, seconds):
        self.now += seconds

    def views(self, x, n, rng):
        """A candidate that takes three seconds."""
        self.seen.append((tuple(x.shape), n))
        self.move(3.0)


@pytest.fixture
def clock(monkeypatch):
    """Training of four steps, which take 1, 2 and 4 seconds after the first."""
    made, runs = [], []

    class Net:
        def __init__(self, *given):
            made.append(given)

        def to(self, device):
            return self

    def train(net, data, schedule, chosen, folds, clean, tick):
        threads = torch.get_num_threads()
        runs.append((len(data), schedule, len(chosen), folds, clean, threads))
        for seconds in (9.0, 1.0, 2.0, 4.0):
            found.move(seconds)
            tick()

    found = Clock()
    monkeypatch.setattr(effort, "Grouped", Net)
    monkeypatch.setattr(effort, "train_members", train)
    monkeypatch.setattr(effort.time, "perf_counter", found)
    monkeypatch.setattr(effort.torch.cuda, "synchronize", lambda: found.move(3.0))
    found.made, found.runs = made, runs
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield found
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("count", "size", "epochs"), [(600, 256, 3), (2000, 256, 3), (300, 150, 5), (100, 50, 12)]
)
def test_a_pace_on_cores(clock, count, size, epochs):
    pace = measure_pace(images(count), [clock, clock], CPU)
    batch = min(64, size)
    assert pace == pytest.approx(7 / 3 / batch + 3 / batch)
    assert clock.seen == [((batch, 1, 8, 8), 1)] * 2
    ((examples, schedule, chosen, folds, clean, threads),) = clock.runs
    assert (chosen, folds, threads) == (0, [], 1)  # as each candidate will have
    assert torch.get_num_threads() == 2  # as before
    assert (schedule.epochs, schedule.batch, schedule.rate) == (epochs, 64, 0.01)
    assert examples == min(count, 4 * size)
    ((network, members, shape, outputs, seed),) = clock.made
    assert (network, members, shape, outputs, seed) == ("small", 1, (1, 8, 8), 2, 0)
    (fold,) = clean
    assert (len(fold.train), fold.seed, fold.number) == (size, 0, 0)


def test_a_pace_on_a_gpu(clock):
    for many in (1, 5):
        clock.runs.clear()
        clock.made.clear()
        pace = measure_pace(images(600), [identity()] * many, GPU, "cnn", steps=2)
        assert pace == pytest.approx((7 + 3) / 3 / 64 / many)  # what is under way counts
        assert [run[2] for run in clock.runs] == [0, many]
        assert [len(run[3]) for run in clock.runs] == [0, 1]
        assert [len(run[4]) for run in clock.runs] == [1, 0]
        assert {run[1].epochs for run in clock.runs} == {2}  # two at least
        assert {run[5] for run in clock.runs} == {2}  # as they were
        assert [given[:2] for given in clock.made] == [("cnn", 1), ("cnn", many)]
    assert clock.seen == []


def test_views_that_are_seen_again_cost_less(clock, monkeypatch):
    for made in (2, 10):
        monkeypatch.setattr(effort, "count_views", lambda data, device, made=made: made)
        for epochs, share in ((4 * made, 0.25), (made, 1.0), (1, 1.0)):
            pace = measure_pace(images(600), [clock], CPU, epochs=epochs)
            assert pace == pytest.approx(7 / 3 / 64 + 3 * share / 64)
    monkeypatch.setattr(effort, "count_views", lambda data, device: None)
    assert measure_pace(images(600), [clock], CPU, epochs=80) == pytest.approx((7 / 3 + 3) / 64)
    assert measure_pace(images(600), [], CPU) == pytest.approx(7 / 3 / 64)


@pytest.mark.parametrize(("device", "seconds"), [(CPU, 5.0), (GPU, 8.0)])
@pytest.mark.parametrize(("count", "size"), [(1000, 192), (100, 50)])
def test_the_pace_of_ones_own_network(clock, monkeypatch, device, seconds, count, size):
    made, runs = [], []

    class Trainer:
        def __init__(self, own, data, schedule, device):
            made.append((own, schedule.epochs, schedule.rate, device))

        def run(self, candidate, fold):
            clock.move(5.0)
            runs.append((candidate, len(fold.train), len(fold.held), fold.seed, fold.number))

    monkeypatch.setattr(effort, "OwnTrainer", Trainer)
    own, data = SimpleNamespace(rate=0.5), images(count)
    assert measure_own_pace(data, ["a", "b", "c"], device, own) == seconds / (2 * size)
    assert made == [(own, 2, 0.5, device)]
    assert runs == [("a", size, 2, 0, 0), ("c", size, 2, 0, 0)]  # the first prepares libraries
    runs.clear()
    measure_own_pace(data, [], device, own)
    assert [run[0] for run in runs] == [identity()] * 2
