"""Trials: folds, efforts, and what rank makes of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import augury
from augury._base.errors import AuguryError
from augury.augmentations import flips, rotation
from augury.data import as_dataset
from augury.forecasting import trial as module
from augury.forecasting.effort import DECIDES, LEVELS, choose_level, make_trial, measure_pace
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.trial import Trial, make_fold, run_folds, shrink, stratified_order

CPU = torch.device("cpu")
SHORT = Trial(epochs=6, examples=200, folds=2, replicas=2)


@pytest.fixture(scope="module")
def data():
    digits = load_digits()
    return as_dataset(digits.images, digits.target)


@pytest.fixture(scope="module")
def folds(data):
    return run_folds(data, [rotation(10), flips()], SHORT, [0, 1], seed=0, device=CPU)


def test_a_trial_tells_what_hurts(folds):
    for fold in folds:
        right = fold.right.mean(0)
        assert right[2] < right[0]  # digits flipped are other digits
        assert fold.losses.shape == (len(fold.index), 3)
        assert len(fold.replicas) == len(fold.half) == 2
        assert fold.right[:, 0].mean() == pytest.approx(float(fold.replicas.mean()))


def test_together_is_one_by_one(data, exact, monkeypatch):
    """Grouping is for speed: each candidate ends where it would by itself."""
    alone = run_folds(data, [rotation(10), flips()], SHORT, [0], seed=0, device=CPU)[0]
    monkeypatch.setattr(module, "OneByOne", module.Together)
    again = run_folds(data, [rotation(10), flips()], SHORT, [0], seed=0, device=CPU)[0]
    assert (alone.right - again.right).abs().mean() < 0.02


def test_the_seed_decides(data, folds):
    again = run_folds(data, [rotation(10), flips()], SHORT, [0], seed=0, device=CPU)[0]
    torch.testing.assert_close(again.losses, folds[0].losses)
    other = run_folds(data, [rotation(10), flips()], SHORT, [0], seed=1, device=CPU)[0]
    assert not torch.equal(other.index, folds[0].index)


def test_folds_are_stratified_and_train_on_other_examples(data):
    folds = [make_fold(data, SHORT, 3, k) for k in range(3)]
    for fold in folds:
        assert not set(fold.train.tolist()) & set(fold.held.tolist())
        counts = torch.bincount(data.y[fold.train], minlength=10)
        assert counts.min() >= 17
        assert counts.max() <= 23
    assert not set(folds[0].train.tolist()) & set(folds[1].train.tolist())
    order = stratified_order(data, 0)
    assert sorted(order.tolist()) == list(range(len(data)))


def test_large_images_are_shrunk_with_their_augmentations():
    images = as_dataset(np.zeros((4, 64, 64, 3), np.uint8), [0, 0, 1, 1])
    small, fitted = shrink(images, [augury.parse("blur(1.0,2.0)"), rotation(15)], 32)
    assert small.shape == (3, 32, 32)
    assert repr(fitted[0]) == "blur(0.5,1.0)"
    assert fitted[1] == rotation(15)
    same, kept = shrink(images, [rotation(15)], 64)
    assert same is images
    assert kept == [rotation(15)]


def test_too_few_examples_are_refused():
    tiny = as_dataset(np.zeros((2, 3)), [0.0, 1.5])
    with pytest.raises(AuguryError, match="at least 5 examples, but there are 2"):
        make_fold(tiny, SHORT, 0, 0)


class TestEffort:
    def test_levels_never_do_less(self, data):
        work = [make_trial(TrainingPlan(), data, k).passes(33) for k in range(len(LEVELS))]
        assert work == sorted(work)
        assert all(LEVELS[k].share == 1 for k in range(DECIDES, len(LEVELS)))
        assert all(LEVELS[k].share < 1 for k in range(DECIDES))

    def test_a_trial_keeps_to_the_planned_epochs(self, data):
        assert make_trial(TrainingPlan(epochs=7), data, DECIDES).epochs == 7
        assert make_trial(TrainingPlan(epochs=100), data, 7).epochs == 100

    def test_high_levels_train_the_planned_network(self, data):
        plan = TrainingPlan(network="resnet")
        assert [make_trial(plan, data, k).network for k in (6, 7, 8)] == ["small", "slim", "resnet"]
        own = TrainingPlan(network="mine:net")
        assert make_trial(own, data, 8).network == "slim"

    def test_larger_images_are_tried_at_64_pixels_on_fewer_examples(self):
        photos = as_dataset(torch.zeros(9000, 1, 70, 70, dtype=torch.uint8), [0, 1] * 4500)
        large, small = (make_trial(TrainingPlan(), photos, k) for k in (9, 7))
        assert (large.side, large.examples, large.folds) == (64, 1333, 2)
        assert (small.side, small.examples, small.folds) == (32, 1000, 2)

    def test_a_budget_chooses_what_fits(self, data, monkeypatch):
        monkeypatch.setattr("augury.forecasting.effort.measure_pace", lambda *a, **k: 1e-4)
        import time

        plan, candidates = TrainingPlan(), [rotation(5)] * 20
        levels = [
            choose_level(plan, data, candidates, CPU, budget, time.perf_counter())
            for budget in (10, 40, 160, 640)
        ]
        assert levels == sorted(levels)
        assert levels[0] < levels[-1]
        for budget, level in zip((10, 40, 160, 640), levels, strict=True):
            seconds = make_trial(plan, data, level).passes(20) * 1e-4 / torch.get_num_threads()
            assert seconds <= budget
        with pytest.raises(AuguryError, match=r"too short for 20 candidates; give at least \d+ s"):
            choose_level(plan, data, candidates, CPU, 0.01, time.perf_counter())

    def test_the_pace_is_a_time(self, data):
        assert 0 < measure_pace(data, [rotation(5)], CPU, steps=4) < 1

    def test_the_default_is_a_trial_for_the_plan(self, data):
        found = augury.rank(
            data, augmentations=["translation(0.1)", "flips >> rotation(180)"], epochs=4, effort=3
        )
        assert found.score == "trial"
        assert found.rows[-1].augmentation == "flips >> rotation(180)"
        assert found.plan["epochs"] == 4
        assert found.plan["examples"] == len(data)
        assert "epochs" not in found.plan["assumed"]
        assert found.effort["level"] == 3
        assert found.effort["epochs"] == 4
        for row in found.rows:
            assert row.low <= row.gain <= row.high
            assert row.probability is None if found.warnings else 0 <= row.probability <= 1
            assert len(row.per_class) == 10

    def test_what_changes_nothing_gains_nothing(self, data):
        same = augury.Sampled(lambda x: x)
        found = augury.rank(
            data, augmentations=[same, "rotation(0.001)", "flips"], epochs=2, effort=3
        )
        for row in found.rows:
            if row.augmentation != "flips":
                assert (row.gain, row.low, row.high) == (0, 0, 0)
                assert row.verdict == "can't tell"

    def test_below_the_planned_epochs_nothing_is_decided(self, data):
        found = augury.rank(data, augmentations=["flips"], epochs=8, effort=1)
        assert found.effort["epochs"] == 4
        assert {row.verdict for row in found.rows} == {"can't tell"}
        assert "too few for verdicts" in found.warnings[0]

    def test_short_trials_say_probably_at_most(self, data):
        specs = ["flips >> rotation(180)", "noise(0.4)"]
        found = augury.rank(data, augmentations=specs, epochs=8, effort=3)
        assert not {row.verdict for row in found.rows} & {"helps", "hurts"}

    def test_shuffled_labels_give_no_verdict(self, data):
        y = np.random.default_rng(0).permutation(data.y.numpy())
        found = augury.rank(
            data.x.numpy(), y, ["flips", "noise(0.1)", "rotation(30)"], epochs=3, effort=3
        )
        assert {row.verdict for row in found.rows} == {"can't tell"}
        assert any("learnt nothing" in warning for warning in found.warnings)

    def test_series_vectors_and_real_targets_are_ranked(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 120)
        for x, target, kind in (
            (rng.normal(size=(120, 4)) + y[:, None], y, "vector"),
            (rng.normal(size=(120, 4)), rng.normal(size=120), "vector"),
            (rng.normal(size=(120, 2, 15)) + y[:, None, None], y, "series"),
        ):
            found = augury.rank(x, target, ["jitter(0.3)"], kind=kind, epochs=2, effort=3)
            assert np.isfinite(found.rows[0].gain)
            assert found.rows[0].verdict != "helps"

    def test_an_outlier_in_a_real_target_stays_within_bounds(self):
        rng = np.random.default_rng(1)
        y = rng.normal(size=120)
        y[3] = 1e12
        found = augury.rank(rng.normal(size=(120, 4)), y, ["jitter(0.3)"], epochs=2, effort=3)
        assert abs(found.rows[0].gain) <= 100
        for score in ("ridge", "kernel-ridge", "alignment", "centred-alignment"):
            found = augury.rank(rng.normal(size=(120, 4)), y, ["jitter(0.3)"], score=score)
            assert abs(found.baseline.score) < 3  # of the variance, which the outlier makes up
            assert abs(found.rows[0].gain) < 3

    def test_bad_plans_and_budgets_are_refused(self, data):
        for options, says in (
            ({"budget": 0}, "positive number of seconds, got 0"),
            ({"budget": "60s"}, "budget must be a positive number of seconds, got '60s'"),
            ({"epochs": 0}, "epochs must be a whole number from 1 to 10,000, got 0"),
            ({"epochs": 2, "plan": TrainingPlan()}, "either epochs or a plan"),
            (
                {"score": "alignment", "budget": 5},
                "budget and effort are only for trial and boosting",
            ),
            ({"effort": 99}, "a whole number from 0 to 10, got 99"),
        ):
            with pytest.raises(AuguryError, match=says):
                augury.rank(data, augmentations=["flips"], **options)
