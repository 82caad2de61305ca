"""Verdicts at their borders."""

from __future__ import annotations

import pytest

from augury.forecasting.verdicts import POINTS, SHARE, verdict


@pytest.mark.parametrize(
    ("gain", "probability", "said"),
    [
        (0.5, 0.9, "helps"),
        (0.5, 0.899, "probably helps"),
        (0.5, 0.75, "probably helps"),
        (0.5, 0.749, "can't tell"),
        (-0.5, 0.25, "probably hurts"),
        (-0.5, 0.251, "can't tell"),
        (-0.5, 0.5, "can't tell"),
        (-0.5, 0.0, "hurts"),
        (-0.5, 0.099, "hurts"),
        (-0.5, 0.11, "probably hurts"),
        (0.2, 1.0, "helps"),  # exactly what matters
        (0.199, 1.0, "can't tell"),
        (-0.2, 0.0, "hurts"),
        (-0.199, 0.0, "can't tell"),
    ],
)
def test_borders(gain, probability, said):
    assert verdict(gain, probability, 0.2) == said


def test_no_gain_never_helps():
    assert verdict(0.0, 0.95, 0.0) == "can't tell"


def test_what_matters_is_what_the_docs_say():
    assert POINTS == 0.2
    assert SHARE == 0.01
