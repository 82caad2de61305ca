"""Average precision, with numbers computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import label_ranking_average_precision_score

from augury.statistics.precision import average_precision


@pytest.mark.parametrize(
    ("scores", "labels", "expected"),
    [
        ([0.9, 0.5, 0.1], [1, 0, 0], 1.0),
        ([0.9, 0.5, 0.1], [0, 1, 0], 1 / 2),
        ([0.9, 0.5, 0.1], [0, 0, 1], 1 / 3),
        ([0.9, 0.5, 0.1], [1, 0, 1], (1 + 2 / 3) / 2),
        ([0.9, 0.5, 0.1], [0, 1, 1], (1 / 2 + 2 / 3) / 2),
        ([0.5, 0.5, 0.1], [1, 0, 0], 1 / 2),  # ties count as higher
        ([0.9, 0.5, 0.1], [0, 0, 0], 1.0),
        ([0.1, 0.5, 0.9], [1, 1, 1], 1.0),
        ([-3.0, -2.0], [1, 0], 1 / 2),
    ],
)
def test_one_example_by_hand(scores, labels, expected):
    found = average_precision(torch.tensor(scores), torch.tensor(labels))
    assert found.shape == ()
    assert float(found) == pytest.approx(expected)


def test_members_and_examples_are_judged_apart():
    rng = np.random.default_rng(0)
    y = (rng.random((30, 5)) < 0.4).astype(int)
    scores = rng.normal(size=(30, 3, 5)).round(1)
    every = torch.from_numpy(y).unsqueeze(1).expand(-1, 3, -1)
    found = average_precision(torch.from_numpy(scores), every)
    assert found.shape == (30, 3)
    for member in range(3):
        theirs = label_ranking_average_precision_score(y, scores[:, member])
        assert float(found[:, member].mean()) == pytest.approx(theirs, abs=1e-6)


def test_labels_may_be_soft():
    scores = torch.tensor([0.1, 0.9])
    assert float(average_precision(scores, torch.tensor([0.51, 0.49]))) == pytest.approx(0.5)
    assert float(average_precision(scores, torch.tensor([0.5, 0.6]))) == pytest.approx(1.0)
    three = torch.tensor([0.9, 0.5, 0.1])  # a half is no label: the second is, and comes second
    assert float(average_precision(three, torch.tensor([0.5, 0.6, 0.0]))) == pytest.approx(0.5)
