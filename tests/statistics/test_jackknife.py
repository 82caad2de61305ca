from __future__ import annotations

import math

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusal import refused
from scipy.stats import t

from augury.statistics import jackknife


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30), st.floats(0.5, 0.99))
def test_the_interval_is_students_about_the_value(values, level):
    found = jackknife(7.0, values, level=level)
    error = reference.leave_group_out_error(values)
    half = t.ppf((1 + level) / 2, len(values) - 1) * error
    assert found.value == 7.0
    assert found.error == pytest.approx(error, rel=1e-9, abs=1e-9)
    assert found.half == pytest.approx(half, rel=1e-9, abs=1e-9)
    assert found.low == pytest.approx(7 - half, rel=1e-9, abs=1e-9)
    assert found.high == pytest.approx(7 + half, rel=1e-9, abs=1e-9)


def test_the_default_is_a_95_percent_interval():
    values = torch.tensor([1.0, 2.0, 4.0])
    assert jackknife(2.0, values) == jackknife(2.0, values, level=0.95)


def test_the_error_of_a_mean_is_that_of_the_textbook():
    """Leaving single values out of a mean gives its usual standard error, s/√n."""
    values = torch.tensor([3.0, 1.0, 4.0, 1.0, 5.0, 9.0], dtype=torch.float64)
    without = (values.sum() - values) / 5
    found = jackknife(float(values.mean()), without)
    assert found.error == pytest.approx(float(values.std()) / math.sqrt(6), rel=1e-12)


@pytest.mark.parametrize("replicates", [[], [1.0]])
def test_one_group_says_nothing_about_the_error(replicates):
    found = jackknife(3.0, replicates)
    assert found == (3.0, math.inf, -math.inf, math.inf, math.inf)


def test_a_replicate_that_is_not_finite_gives_no_finite_interval():
    assert not math.isfinite(jackknife(1.0, [1.0, math.nan, 2.0]).half)


@pytest.mark.parametrize("level", [-0.1, 0, 1, 1.5])
def test_a_level_is_between_nought_and_one(level):
    said = f"level must be a probability between 0 and 1, got {level}"
    refused(said, jackknife, 1.0, [1.0, 2.0], level=level)
