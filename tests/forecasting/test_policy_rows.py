"""Rows of a policy's table."""

from __future__ import annotations

import pytest

from augury.augmentations import parse
from augury.forecasting.forecast import Judgement
from augury.forecasting.policy import rows
from augury.forecasting.policy.policy import PolicyRow


def test_a_row_says_what_was_found():
    found = Judgement(82.0, 2.0, -1.0, 4.0, 0.9)
    row = rows.as_row(parse("flips"), "part", found, 3)
    assert row == PolicyRow("flips", "part", 2.0, -1.0, 4.0, 0.9, 3)


def test_the_probability_of_a_moved_row_fits_its_gain():
    row = rows.as_row(parse("flips"), "part", Judgement(82.0, 2.0, -1.0, 5.0, 0.9), 1)
    moved = rows.at_gain(row, -1.0)
    assert (moved.gain, moved.low, moved.high) == (-1.0, -4.0, 2.0)
    assert moved.probability < 0.5 < rows.at_gain(row, 0.5).probability
    assert rows.at_gain(row, 0.0).probability == pytest.approx(0.5)
    edge = rows.at_gain(row, (row.high - row.low) / 2)
    assert edge.low == pytest.approx(0)
    assert edge.probability == pytest.approx(0.975)


def test_no_forecast_leaves_the_accuracies_that_there_are():
    row = PolicyRow("flips", "rival", -19.0, -31.9, 90.0, 0.1, 1)
    found = rows.bounded(row, 22.6)
    assert (found.gain, found.low) == (-19.0, -22.6)
    assert found.high == pytest.approx(77.4)
    assert rows.bounded(found, 22.6) == found


def test_what_is_chosen_untried_may_do_anything_and_nothing_does_nothing():
    none, untried = rows.none(parse("identity")), rows.untried(parse("flips"))
    assert none == PolicyRow("identity", "chosen", 0.0, 0.0, 0.0, 0.5, 2)
    assert untried == PolicyRow("flips", "chosen", 0.0, -100.0, 100.0, 0.5, 0)
