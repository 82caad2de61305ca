"""Where there is no effect, no score claims one (benchmarks/no_effect.py has 50 runs of each)."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import augury
from augury.forecasting.scores import SCORES

REAL = ["rotation(30)", "translation(0.1)", "horizontal_flip", "noise(0.2)"]
IMAGES = [name for name in SCORES if name != "boosting"]  # that one is for tables
CLOSED = [name for name in IMAGES if name != "trial"]


@pytest.fixture(scope="module")
def digits():
    found = load_digits()
    return found.images[:400], found.target[:400]


def rank(x, y, score, candidates=REAL, seed=0):
    work = {"effort": 5} if score == "trial" else {"feature_map": augury.FourierFeatures(128)}
    return augury.rank(x, y, candidates, kind="image", score=score, epochs=3, seed=seed, **work)


@pytest.mark.parametrize("score", CLOSED)
def test_real_labels_are_more_than_chance(digits, score):
    found = rank(*digits, score)
    assert {row.verdict for row in found.rows} & {"helps", "hurts"}
    assert not found.warnings


@pytest.mark.parametrize("score", CLOSED)
@pytest.mark.parametrize("seed", [0, 1])
def test_labels_of_chance_give_no_verdict(digits, score, seed):
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (400, 8, 8), dtype=np.uint8)
    for x, y in ((digits[0], rng.permutation(digits[1])), (noise, digits[1])):
        found = rank(x, y, score, seed=seed)
        assert {row.verdict for row in found.rows} == {"can't tell"}
        assert "predict the labels no better than chance" in found.warnings[0]


@pytest.mark.parametrize("score", IMAGES)
def test_copies_on_both_sides_of_a_split_are_no_knowledge(digits, score):
    rng = np.random.default_rng(3)
    x, y = (np.repeat(part[:100], 4, 0) for part in digits)
    y = np.repeat(rng.permutation(y[::4]), 4)
    order = rng.permutation(400)
    found = rank(x[order], y[order], score)
    assert {row.verdict for row in found.rows} == {"can't tell"}
    assert "300 of 400 examples are copies and were left out" in found.dataset["notes"]
