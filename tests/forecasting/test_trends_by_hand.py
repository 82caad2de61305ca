"""Trends of the leaders, with made-up trials."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from augury.augmentations import flips, rotation
from augury.data import as_dataset
from augury.forecasting import trends as module
from augury.forecasting.forecast import SMALL, Forecast, Judgement
from augury.forecasting.trends import LEADERS, find_trends
from augury.forecasting.trial import HeldOut, Trial

CPU = torch.device("cpu")
SIZE = 100


def fold(rights):
    index = torch.arange(SIZE)
    right = torch.stack([(index < round(r * SIZE)).double() for r in rights], 1)
    losses = torch.full(right.shape, 1.2, dtype=torch.float64)
    reals = [torch.tensor(v, dtype=torch.float64) for v in ((0.5, 0.52), (0.4, 0.42))]
    return HeldOut(index, losses, right, *reals)


RATE = 0.3
KNOWN = [fold([0.5, 0.6, 0.45])]
JUDGED = [Judgement(55, 5.5, 4.5, 6.5, 0.9), Judgement(45, -5.5, -6.5, -4.5, 0.1)]
TRIED = {(2, 40): [0.5, 0.55, 0.5], (8, 40): [0.5, 0.7, 0.4], (4, 20): [0.5, 0.52, 0.48]}


def images(classes):
    x = np.random.default_rng(0).integers(0, 255, (SIZE, 8, 8), np.uint8)
    y = np.arange(SIZE) % 10 if classes else np.linspace(-1, 1, SIZE)
    return as_dataset(x, y)


def test_several_labels_are_judged_as_in_the_ranking(monkeypatch):
    """By average precision, with log-odds, and not as a share of the variance."""
    made = []
    monkeypatch.setattr(module, "Forecast", lambda *given, **_: made.append(given[2]) or Judge())
    tagged = (np.arange(SIZE * 3).reshape(SIZE, 3) % 2).astype(bool)
    follow(monkeypatch, as_dataset(images(True).x, tagged, task="multi-label"), Trial(4, 1, 40))
    assert set(made) == {3}


class Judge:
    def judge(self, k):
        return JUDGED[k]


def follow(monkeypatch, data, trial, planned=SIZE):
    asked = []

    def run_folds(data, leaders, trial, numbers, **options):
        asked.append((leaders, numbers, options))
        return [fold(TRIED.get((trial.epochs, trial.examples), [0.5] * 3))]

    monkeypatch.setattr(module, "run_folds", run_folds)
    found = find_trends(
        data, [flips(), rotation(5)], trial, KNOWN, JUDGED, planned,
        names=["the first", "the second"], seed=3, device=CPU, calibration=SMALL, rate=RATE,
    )  # fmt: skip
    return found, asked


@pytest.mark.parametrize("classes", [True, False])
def test_trends_by_hand(monkeypatch, classes):
    data = images(classes)
    (one, two, three, four), asked = follow(monkeypatch, data, Trial(4, examples=40))
    assert len(asked) == 3
    options = {"seed": 3, "device": CPU, "curve": False, "own": None}
    assert all(now == ([flips(), rotation(5)], [0], options) for now in asked)
    assert [t.augmentation for t in (one, two, three, four)] == ["the first"] * 2 + [
        "the second"
    ] * 2
    assert [t.along for t in (one, two, three, four)] == ["epochs", "examples"] * 2

    def judge(folds, trained, planned, k):
        return Forecast(
            folds, data.y, 10 if classes else None, trained=trained, planned=planned,
            rate=RATE, calibration=SMALL,
        ).judge(k)  # fmt: skip

    for k, (along_epochs, along_examples) in enumerate([(one, two), (three, four)]):
        assert along_epochs.values == (2, 4, 8)
        few = judge([fold(TRIED[2, 40])], 40, SIZE, k)
        many = judge([fold(TRIED[8, 40])], 40, SIZE, k)
        assert along_epochs.gains == pytest.approx((few.gain, JUDGED[k].gain, many.gain))
        assert along_epochs.lows == pytest.approx((few.low, JUDGED[k].low, many.low))
        assert along_epochs.highs == pytest.approx((few.high, JUDGED[k].high, many.high))
        assert along_examples.values == (20, 40, 100)
        half = judge([fold(TRIED[4, 20])], 20, 20, k)
        here = judge(KNOWN, 40, 40, k)
        assert along_examples.gains == pytest.approx((half.gain, here.gain, JUDGED[k].gain))


def test_the_smallest_trial_has_one_epoch_and_two_examples(monkeypatch):
    found, asked = follow(monkeypatch, images(True), Trial(1, examples=3))
    assert len(asked) == 2  # what was tried is not tried again
    assert found[0].values == (1, 2)
    assert found[0].gains[0] == JUDGED[0].gain
    assert found[1].values == (2, 3, 100)


def test_half_of_two_epochs_is_one(monkeypatch):
    found, _ = follow(monkeypatch, images(True), Trial(2, examples=40))
    assert found[0].values == (1, 2, 4)
    found, _ = follow(monkeypatch, images(True), Trial(6, examples=5))
    assert found[0].values == (3, 6, 12)
    assert found[1].values == (2, 5, 100)


def test_as_many_leaders_as_the_docs_say():
    assert LEADERS == 3
