"""What each part of a policy adds."""

from __future__ import annotations

import numpy as np
import pytest

from augury.forecasting.policy.parts import pool


def test_without_noise_parts_add_what_was_lost():
    assert pool([2.0, -1.0, 0.5], [1, 0.5, 0.1], 3.0, 0.0) == [2.0, -1.0, 0.5]
    near = pool([2.0, -1.0, 0.5], [1, 0.5, 0.1], 3.0, 1e-4)
    assert near == pytest.approx([2.0, -1.0, 0.5], abs=1e-6)


def test_parts_that_lose_alike_share_half_of_what_noise_may_be():
    """σ² = 1; the prior of c has the variance (4 + 2) / 4, so 3 along (1, 1), and the noise 3."""
    assert pool([3.0, 3.0], [1, 1], 2.0, 2**0.5) == pytest.approx([2.0, 2.0])
    assert pool([-1.0, -1.0], [1, 1], 2.0, 2**0.5) == pytest.approx([0.0, 0.0])


def test_of_what_parts_lose_unlike_each_other_what_exceeds_noise_is_kept():
    """Rests of ±2 have the variance 8, 2 of which is noise: τ² = 6, beside σ² = 1."""
    assert pool([4.0, 0.0], [1, 1], 4.0, 2**0.5) == pytest.approx([2 + 12 / 7, 2 - 12 / 7])
    assert pool([2.5, 1.5], [1, 1], 4.0, 2**0.5) == pytest.approx([2.0, 2.0])  # 0.5 < 2


def test_of_three_parts_two_rests_are_free():
    """Rests of 2, −1 and −1 have the variance 6 / 2, half of which is noise; σ² = 0.75."""
    found = pool([4.0, 1.0, 1.0], [1, 1, 1], 6.0, 1.5**0.5)
    assert found == pytest.approx([2 + 4 / 3, 2 - 2 / 3, 2 - 2 / 3])


def test_in_noise_parts_share_the_gain_by_how_often_they_are_applied():
    """One part is applied in half of the images: c is 2, and all that was lost is unlikely."""
    assert pool([2.0, 1.0], [1, 0.5], 3.0, 5.0) == pytest.approx([2.0, 1.0])
    one, other = pool([-1.0, -0.5], [1, 0.5], 3.0, 0.3)
    assert one == pytest.approx(2 * other)
    assert -1.0 < one < 0.0  # well above noise, so that the whole gain does not hide it
    one, other = pool([-1.0, -0.5], [1, 0.5], 3.0, 2.0)
    assert one == pytest.approx(2 * other)
    assert 0.0 < one < 2.0


def test_parts_that_are_never_applied_add_what_was_lost():
    assert pool([2.0, -1.0], [0, 0], 1.0, 1.0) == [2.0, -1.0]


def test_one_part_is_between_what_was_lost_and_the_whole_gain():
    assert pool([0.5], [0.3], 0.5, 1.0) == pytest.approx([0.5])
    # the variance of the prior is 1 + 1, that of the noise of two runs 1
    assert pool([4.0], [0.3], 1.0, 1.0) == pytest.approx([3.0])


def test_parts_of_a_policy_that_hurts_are_expected_to_hurt():
    assert max(pool([0.1, 0.1], [1, 1], -4.0, 3.0)) < 0


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2])
def test_pooled_parts_are_nearer_to_the_truth(share):
    """Six parts, which add less together than the policy gains, and noise of the whole."""
    rng = np.random.default_rng(0)
    often = np.array([1.0, 0.5, 0.25, 0.25, 0.25, 0.25])
    raw = pooled = 0.0
    for _ in range(300):
        true = share * 2 / often.sum() * often + rng.normal(0, 0.3, 6)
        noise = (rng.normal(0, 1, 6) + rng.normal(0, 1)) / 2**0.5
        raw += np.mean(noise**2)
        pooled += np.mean((pool(true + noise, often, 2 + rng.normal(0, 0.5), 1.0) - true) ** 2)
    assert pooled < 0.25 * raw
