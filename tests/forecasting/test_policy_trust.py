"""What is said of how far a search can be relied on, against what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from augury.forecasting.policy.trust import trust

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "policy"
COMPARED = {
    "trivial_augment(1)": "{:.1f} points more than TrivialAugment",
    "rand_augment(2,9)": "{:.1f} more than RandAugment",
}
CHOICES = (
    "identity", *(f"trivial_augment({k})" for k in (1, 2, 3, 4)), "rand_augment(2,9)",
    "(identity | trivial_augment(1)) ** 2", "horizontal_flip >> translation(0.125)",
)  # fmt: skip


def test_what_is_said_of_searches_was_measured():
    cells = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")]
    assert len(cells) == 10
    means = [
        {spec: float(np.mean(runs)) for spec, runs in cell["accuracy"].items()} for cell in cells
    ]
    chosen = [found[cell["policy"]] for cell, found in zip(cells, means, strict=True)]
    said = trust(small=False, own=False)
    assert said.startswith("Policies found on a GPU were trained with on ten combinations")
    for spec, words in COMPARED.items():
        ahead = np.mean([own - found[spec] for own, found in zip(chosen, means, strict=True)])
        assert words.format(ahead) in said
    best = [max(found[spec] for spec in CHOICES) for found in means]
    behind = [most - own for most, own in zip(best, chosen, strict=True)]
    assert sum(points > 1 for points in behind) == 2
    assert "on two of the ten, another choice was better by more than a point" in said


def test_what_was_not_measured_is_said():
    small, own = trust(small=True, own=False), trust(small=True, own=True)
    assert small.startswith("This search tried a small network instead of the planned one")
    assert own.startswith("Searches with a user's own network were not measured")
    assert all("1.8 points more than TrivialAugment" in said for said in (small, own))
