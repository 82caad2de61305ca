"""What each part of a policy adds."""

from __future__ import annotations

import numpy as np
import pytest

from augury.forecasting.policy.parts import pool


def test_without_noise_parts_add_what_was_lost():
    assert pool([2.0, -1.0, 0.5], [1, 0.5, 0.1], 0.0) == pytest.approx([2.0, -1.0, 0.5])


def test_in_noise_parts_add_by_how_often_they_are_applied():
    assert pool([0.9, 0.3, -0.3], [1, 1, 1], 5.0) == pytest.approx([0.3, 0.3, 0.3])
    assert pool([2.0, -0.2], [1, 0.1], 5.0) == pytest.approx([1.98 / 1.01, 0.198 / 1.01])


def test_between_them_what_exceeds_noise_is_kept():
    """The rest is ±1 with variance 2, half of which is noise."""
    assert pool([3.0, 1.0], [1, 1], 1.0) == pytest.approx([2.5, 1.5])


def test_of_three_parts_two_rests_are_free():
    """Rests of 2, −1 and −1 have the variance 6 / 2, half of which is noise."""
    assert pool([4.0, 1.0, 1.0], [1, 1, 1], 1.5**0.5) == pytest.approx([3.0, 1.5, 1.5])
    assert pool([0.4, 0.1, 0.1], [1, 1, 1], 0.015**0.5) == pytest.approx([0.3, 0.15, 0.15])


def test_parts_that_are_never_applied_add_what_was_lost():
    assert pool([2.0, -1.0], [0, 0], 1.0) == [2.0, -1.0]


def test_equal_parts_are_equal():
    assert pool([0.5, 0.5], [1, 1], 0.0) == pytest.approx([0.5, 0.5])
    assert pool([0.5], [0.3], 1.0) == pytest.approx([0.5])


def test_pooled_parts_have_their_signs_more_often():
    """Six parts, whose true effects follow how often they are applied but for their own part."""
    rng = np.random.default_rng(0)
    often = np.array([1.0, 0.5, 0.25, 0.25, 0.25, 0.25])
    raw = pooled = 0.0
    for _ in range(300):
        true = 2 * often + rng.normal(0, 0.3, 6)
        seen = true + rng.normal(0, 1.0, 6)
        clear = np.abs(true) > 0.5
        raw += np.mean((np.sign(seen) == np.sign(true))[clear])
        pooled += np.mean((np.sign(pool(seen, often, 1.0)) == np.sign(true))[clear])
    assert pooled > raw + 15  # of 300
