"""The rules by which claims are judged."""

from __future__ import annotations

import numpy as np
import pytest

from augury_paper.claims import (
    graded,
    mean_and_spread,
    share_and_error,
    share_of,
    spread,
    standard_error,
)


@pytest.mark.parametrize(
    ("value", "error", "verdict"),
    [
        (0.9, 0.0, "holds"),
        (0.8, 0.2, "holds"),
        (0.5, 0.1, "holds weaker"),
        (0.5, 0.3, "could not be checked"),
        (0.9, 0.5, "could not be checked"),
        (-0.1, 0.5, "could not be checked"),
        (0.1, 0.1, "does not hold"),
        (-0.1, 0.1, "does not hold"),
        (-0.1, 0.0, "does not hold"),
        (0.9, float("nan"), "could not be checked"),
    ],
)
def test_a_number_is_judged_with_its_error(value, error, verdict):
    assert graded(value, 0.7, 0.0, error) == verdict


def test_the_error_of_a_share_is_that_of_many_repetitions():
    rng = np.random.default_rng(0)
    parts, wholes = rng.normal(1.5, 0.3, (400, 10)), rng.normal(2.0, 0.3, (400, 10))
    found = np.array([share_of(a, b) for a, b in zip(parts, wholes, strict=True)])
    np.testing.assert_allclose(found[:, 0], parts.mean(1) / wholes.mean(1))
    assert np.median(found[:, 1]) == pytest.approx(found[:, 0].std(), rel=0.15)
    assert share_of([0.6], [1.2]) == (0.5, 0.0)


def test_errors_of_a_mean():
    assert standard_error([1.0, 3.0]) == pytest.approx(1.0)
    assert standard_error([1.0]) == 0.0
    assert mean_and_spread([1.0, 3.0]) == "2.00 ± 1.41"
    assert mean_and_spread([-1.0]) == "−1.00"
    np.testing.assert_allclose(spread([[1.0, 2.0], [3.0, 2.0]]), [2**0.5, 0.0])
    np.testing.assert_array_equal(spread([[1.0, 2.0]]), [0.0, 0.0])


def test_a_share_is_written_with_its_error_if_it_has_one():
    assert share_and_error(0.84, 0.16) == "84 ± 16 %"
    assert share_and_error(-0.99, 0.59) == "−99 ± 59 %"
    assert share_and_error(1.0, 0.0) == "100 %"
    assert share_and_error(1.0, float("nan")) == "100 %"
