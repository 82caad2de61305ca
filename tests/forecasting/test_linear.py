"""The linear model that a trial's network must beat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn import model_selection
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_predict

from augury.data import as_dataset
from augury.forecasting import linear
from augury.forecasting.linear import linear_score


def test_a_real_target_by_hand():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    y = x @ [1.0, -2.0, 0.5] + 0.7 * rng.normal(size=90)
    data = as_dataset(x, y)
    order = np.random.default_rng(5).permutation(90)
    inputs, target = data.x.numpy()[order], data.y.numpy()[order]
    found = cross_val_predict(RidgeCV(np.logspace(-3, 4, 15)), inputs, target, cv=3)
    by_hand = 1 - np.mean((found - target) ** 2) / np.var(target)
    assert linear_score(data, 5) == pytest.approx(by_hand, abs=1e-9)
    assert 0.8 < by_hand < 0.98


def test_a_class_by_hand():
    rng = np.random.default_rng(1)
    y = np.arange(90) % 3
    x = rng.normal(size=(90, 4))
    x[:, 0] += y
    data = as_dataset(x, y)
    order = np.random.default_rng(2).permutation(90)
    inputs, target = data.x.numpy()[order], data.y.numpy()[order]
    found = cross_val_predict(LogisticRegression(max_iter=500), inputs, target, cv=3)
    assert linear_score(data, 2) == pytest.approx(np.mean(found == target))
    assert linear_score(data, 2) < 0.99


def test_negative_seeds_are_seeds():
    x = np.random.default_rng(0).normal(size=(30, 2))
    assert np.isfinite(linear_score(as_dataset(x, x[:, 0]), -3))


def test_a_class_of_two_cannot_be_held_out_thrice():
    x = np.random.default_rng(0).normal(size=(20, 2))
    few = np.array([0] * 18 + [1] * 2)
    assert linear_score(as_dataset(x, few), 0) == 0.0
    three = np.array([0] * 17 + [1] * 3)
    assert linear_score(as_dataset(x, three), 0) > 0.5


def test_large_data_are_sampled(monkeypatch):
    assert linear._MOST == 2000
    monkeypatch.setattr(linear, "_MOST", 40)
    sizes, models = [], []
    real = model_selection.cross_val_predict

    def watched(model, x, y, cv, groups):
        sizes.append((len(x), cv))
        models.append(model)
        return real(model, x, y, cv=cv, groups=groups)

    monkeypatch.setattr(model_selection, "cross_val_predict", watched)
    x = np.random.default_rng(0).normal(size=(90, 2))
    linear_score(as_dataset(x, x[:, 0]), 0)
    linear_score(as_dataset(x, (x[:, 0] > 0).astype(int)), 0)
    assert sizes == [(40, 3), (40, 3)]
    assert np.array_equal(models[0].alphas, np.logspace(-3, 4, 15))
    assert (models[1].max_iter, models[1].class_weight) == (500, None)


def test_a_constant_target_does_not_divide_by_zero():
    x = np.random.default_rng(0).normal(size=(30, 2))
    y = np.full(30, 2.5)
    y[0] += 1e-9
    assert np.isfinite(linear_score(as_dataset(x, y, task="regression"), 0))


@pytest.mark.parametrize(("groups", "parts"), [(5, 3), (3, 3), (2, 2)])
def test_groups_are_held_out_in_three_parts_at_most(monkeypatch, groups, parts):
    seen = []
    real = model_selection.cross_val_predict

    def watched(model, x, y, cv, groups):
        seen.append(cv.get_n_splits())
        return real(model, x, y, cv=cv, groups=groups)

    monkeypatch.setattr(model_selection, "cross_val_predict", watched)
    x = np.random.default_rng(0).normal(size=(30, 2))
    linear_score(as_dataset(x, x[:, 0], groups=np.arange(30) % groups), 0)
    assert seen == [parts]


def test_classes_count_alike_where_they_are_very_unequal():
    """A model that always says the common class is right in 90 % and knows nothing."""
    rng = np.random.default_rng(0)
    y = (np.arange(300) % 10 == 0).astype(int)
    data = as_dataset(rng.normal(size=(300, 3)), y)
    assert linear_score(data, 0) > 0.85
    order = np.random.default_rng(0).permutation(300)
    inputs, target = data.x.numpy()[order], data.y.numpy()[order]
    model = LogisticRegression(max_iter=500, class_weight="balanced")
    found = cross_val_predict(model, inputs, target, cv=3)
    by_hand = balanced_accuracy_score(target, found)
    assert linear_score(data, 0, balanced=True) == pytest.approx(by_hand)
    assert abs(by_hand - 0.5) > 0.02  # or the share that is wrong would do as well


@pytest.mark.parametrize(
    ("sizes", "classes", "least"),
    [((40, 40, 5, 5), (0, 0, 1, 1), 0.9), ((40, 5), (0, 1), 0.0)],
)
def test_groups_of_one_class_each(sizes, classes, least):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    y = np.repeat(classes, sizes)
    x = np.random.default_rng(0).normal(size=(len(y), 2)) + 4 * y[:, None]
    data = replace(as_dataset(x, y), groups=torch.from_numpy(groups))
    found = linear_score(data, 0)
    assert found >= least
    assert (found == 0) == (least == 0)  # no split leaves two classes to learn
