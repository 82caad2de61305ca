"""Verdicts at their borders."""

from __future__ import annotations

import pytest

from augury.forecasting.verdicts import CLEAR, POINTS, SHARE, explain, verdict
from augury.results.ranking import Row


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
        (-0.5, 1 - 0.9, "hurts"),
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
    assert CLEAR == 0.95


def test_the_rule_is_said_where_an_interval_beside_a_verdict_includes_zero():
    def row(low, high, said):
        return Row("flips", 0.0, (low + high) / 2, low, high, said)

    sure = [row(0.1, 2.0, "helps"), row(-3.0, -0.2, "hurts")]
    unsure = [row(-1.0, 2.0, "probably helps"), row(-1.0, 1.0, "can't tell")]
    assert explain([*sure, *unsure]) == ""
    ends = (row(0.0, 2.0, "helps"), row(-2.0, 0.0, "hurts"))
    for one in (row(-0.1, 2.0, "helps"), row(-2.0, 0.1, "hurts"), *ends):
        assert "a probability of 90 % or more" in explain([*sure, one])
        assert "some of these candidates include zero" in explain([*sure, one])
    assert explain(sure, withheld=True).startswith("Some candidates have no verdict although")
    assert explain([*sure, ends[0]], True) == f"{explain([ends[0]])} {explain(sure, True)}"
