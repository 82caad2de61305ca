"""What is said of how far a search can be relied on, against what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from augury.forecasting.policy import trust

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import _policy_page

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "policy"
CHOICES = (
    "identity", *(f"trivial_augment({k})" for k in (1, 2, 3, 4)), "rand_augment(2,9)",
    "(identity | trivial_augment(1)) ** 2", "horizontal_flip >> translation(0.125)",
)  # fmt: skip


def measured(small, own):
    """Return the means of all results of such searches: of the choice, and of each recipe."""
    cells = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")]
    for cell in cells:
        on_cpu = "cuda" not in cell["search_environment"]["machine"]
        theirs = cell["network"] not in ("cnn", "resnet", "lenet")
        if (on_cpu, theirs) == (small, own):
            means = {spec: float(np.mean(runs)) for spec, runs in cell["accuracy"].items()}
            yield means[cell["policy"]], means


@pytest.mark.parametrize(
    ("small", "own", "count", "words", "worse"),
    [(False, False, 10, "ten", 0), (True, False, 5, "five", 1), (False, True, 2, "two", 0)],
)
def test_what_is_said_of_searches_was_measured(small, own, count, words, worse):
    found = list(measured(small, own))
    said = trust.trust(small, own)
    assert len(found) == count
    assert f"on {words} " in said
    over = [
        np.mean([chosen - means[spec] for chosen, means in found])
        for spec in ("trivial_augment(1)", "rand_augment(2,9)")
    ]
    assert "{:.1f} points more than TrivialAugment and {:.1f} more than".format(*over) in said
    behind = [max(means[spec] for spec in CHOICES) - chosen for chosen, means in found]
    assert sum(points > 0.3 for points in behind) == worse
    assert ("better by more than 0.3 points" in said) is not own


def test_the_recipe_that_was_better_is_named():
    """As on the page of the measurements, with the same error."""
    small = [f for f in _policy_page.read() if "accuracy" in f and not _policy_page.on_gpu(f)]
    page = _policy_page.ahead(small)
    assert "In 1 of the 5 rows" in page
    assert "RandAugment(2,9) by 0.6 ± 0.9 points on cifar10 (cnn, 1,500 examples)" in page
    said = trust.trust(small=True, own=False)
    assert "0.3 points on four of them" in said
    assert "RandAugment by 0.6 ± 0.9 points (± is the standard error) on the fifth." in said


def test_each_kind_of_search_is_named():
    assert trust.trust(small=False, own=False).startswith("Policies found on a GPU")
    assert trust.trust(small=True, own=False).startswith("This search tried a small network")
    for small in (False, True):
        assert trust.trust(small, own=True).startswith("Searches with a user's own network")
