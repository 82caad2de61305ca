"""How the leaders' gains change with epochs and examples."""

from __future__ import annotations

import numpy as np

import augury
from augury.results.ranking import Ranking


def blobs(count=160, side=8):
    rng = np.random.default_rng(0)
    y = np.arange(count) % 2
    x = rng.integers(0, 120, (count, side, side), dtype=np.uint8)
    x[y == 1, :, : side // 2] += 60
    return x, y


def ranked(**options):
    specs = ["horizontal_flip", "vertical_flip", "noise(0.05)", "invert"]
    return augury.rank(*blobs(), specs, epochs=4, effort=3, **options)


def test_leaders_are_followed_along_epochs_and_examples():
    found = ranked(trends=True)
    assert len(found.extrapolation) == 6
    first = [row.augmentation for row in found.rows[:3]]
    assert [t.augmentation for t in found.extrapolation[::2]] == first
    for trend in found.extrapolation:
        row = found[trend.augmentation]
        planned = {"epochs": 4, "examples": 160}[trend.along]
        at = trend.values.index(planned)
        assert np.isclose(trend.gains[at], row.gain)  # what is planned is what was ranked
        assert np.isclose(trend.lows[at], row.low)
        ends = zip(trend.lows, trend.gains, trend.highs, strict=True)
        assert all(low <= gain <= high for low, gain, high in ends)
    epochs, examples = found.extrapolation[:2]
    assert epochs.values == (2, 4, 8)
    assert examples.values == (53, 106, 160)
    assert len(set(epochs.gains)) > 1
    again = Ranking.from_json(found.to_json())
    assert again.extrapolation == found.extrapolation
    assert "gain against epochs" in found.to_html().lower()


def test_a_cpu_follows_nobody_unasked():
    assert ranked().extrapolation == ()
