"""scikit-learn's features and ridge classifier, as Table 1 compares with them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeClassifier

import augury
from augury_paper.table1 import sklearn_pair as module


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_chosen_ridge_is_right_most_often(seed):
    """By `RidgeClassifier` itself, for every λ; of nearly as many features as rows."""
    rng = np.random.default_rng(seed)
    y, new_y = np.arange(60) % 3, np.arange(600) % 3
    centres = rng.normal(size=(3, 55)).astype(np.float32)
    x, new = (
        (centres[one] + 2 * rng.normal(size=(len(one), 55))).astype(np.float32)
        for one in (y, new_y)
    )
    held = augury.as_dataset(new, new_y)
    found = module._best_ridge(x.copy(), y, new.copy(), held)
    right = {
        ridge: (RidgeClassifier(alpha=ridge * len(x)).fit(x, y).predict(new) == new_y).mean()
        for ridge in module._RIDGES
    }
    assert max(right.values()) > min(right.values()) + 0.1
    assert right[found] >= max(right.values()) - 2 / len(new)  # a tie within rounding
    assert found in module._RIDGES


def test_views_are_those_of_the_task():
    x = np.random.default_rng(0).integers(0, 255, (6, 8, 8), np.uint8)
    data = augury.as_dataset(x, np.arange(6) % 2, max_examples=None)
    task = module.TASKS["mnist"]
    views, y = module._views(data, task, 3, 0)
    assert views.shape == (18, 64)
    assert sorted(y.tolist()) == [0] * 9 + [1] * 9
    again, _ = module._views(data, task, 3, 0)
    other, _ = module._views(data, task, 3, 1)
    assert np.array_equal(views, again)
    assert not np.array_equal(views, other)
    assert not torch.tensor(views).isnan().any()
