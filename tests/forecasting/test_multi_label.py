"""Multi-label targets: read, ranked in points of mean average precision, refused where odd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusal import refused
from sklearn.metrics import label_ranking_average_precision_score

import augury
from augury.data import as_dataset
from augury.statistics.precision import average_precision


def tagged(n: int, seed: int = 0):
    """Series of two bumps of three kinds, and which kinds there are."""
    rng = np.random.default_rng(seed)
    y = (rng.random((n, 3)) < 0.5).astype(int)
    time = np.linspace(0, 1, 24)
    shapes = [np.sin(2 * np.pi * k * time) for k in (1, 3, 5)]
    return (y @ np.stack(shapes) + 0.3 * rng.normal(size=(n, 24)))[:, None], y


def test_average_precision_is_scikit_learns():
    rng = np.random.default_rng(0)
    y = (rng.random((200, 5)) < 0.4).astype(int)
    scores = rng.normal(size=(200, 5)).round(1)  # some are equal
    ours = average_precision(torch.from_numpy(scores), torch.from_numpy(y))
    theirs = label_ranking_average_precision_score(y, scores)
    assert float(ours.mean()) == pytest.approx(theirs, abs=1e-6)


def test_tables_of_zeros_and_ones_are_labels():
    x, y = tagged(40)
    data = as_dataset(x, y, classes=["slow", "middle", "fast"], kind="series")
    assert (data.task, data.tags, data.outputs) == ("multi-label", ("slow", "middle", "fast"), 3)
    assert data.classes is None
    assert np.array_equal(data.labels(), y)
    assert "each example has any number of 3 labels: slow, middle and fast" in data.notes
    assert data.subsample(20, 0).y.shape == (20, 3)
    assert float(data.targets().mean(0).abs().max()) < 1e-12


def test_labels_that_do_not_fit_are_refused():
    x, y = tagged(40)
    refused("for one-hot rows give y.argmax(1)", as_dataset, x, np.eye(3)[np.arange(40) % 3])
    assert as_dataset(x, np.eye(3)[np.arange(40) % 3], task="multi-label").task == "multi-label"
    refused("one value for each example", as_dataset, x, y + 1)
    refused("table of 0 and 1", as_dataset, x, y[:, 0], task="multi-label")
    refused("label '1'|none of the 40", as_dataset, x, y * [1, 0, 1], task="multi-label")
    refused("2 names for 3 labels", as_dataset, x, y, classes=["a", "b"])


def test_series_with_several_labels_are_ranked():
    x, y = tagged(60)
    found = augury.rank(x, y, ["jitter(0.1)", "permutation(8)"], kind="series", effort=1)
    assert found.dataset["task"] == "multi-label"
    assert 50 < found.baseline.score <= 100
    assert all(row.low <= row.gain <= row.high for row in found.rows)
    assert all(not row.per_class for row in found.rows)
    assert "several labels" in found.to_html()


def test_tables_with_several_labels_are_ranked(run, tmp_path):
    x, y = tagged(60)
    found = augury.rank(x[:, 0, ::6], y, ["column_noise(0.1)"], effort=0)
    assert found.score == "boosting"
    assert any("not checked on tables with several labels" in warning for warning in found.warnings)
    assert 50 < found.baseline.score <= 100
    np.savez(tmp_path / "a.npz", x=x[:, 0, ::6], y=y)
    code, out, _ = run("rank", "a.npz", "-a", "column_noise(0.1)", "--effort", "0")
    assert code == 0
    assert "% mean average precision" in out


def test_a_closed_form_ranks_several_labels():
    x, y = tagged(60)
    found = augury.rank(x, y, ["jitter(0.1)"], kind="series", score="ridge")
    assert np.isfinite(found.rows[0].gain)


@pytest.mark.parametrize("several", [True, False])
def test_sound_with_several_labels_or_a_number_is_ranked(several):
    rng = np.random.default_rng(0)
    y = (rng.random((40, 3)) < 0.5).astype(int)
    time = np.arange(1000) / 4000
    tones = np.stack([np.sin(2 * np.pi * hertz * time) for hertz in (200, 600, 1500)])
    x = (y @ tones + 0.3 * rng.normal(size=(40, 1000)))[:, None]
    target = y if several else y @ [1.0, 2.5, -1.0] + 0.01 * rng.normal(size=40)
    found = augury.rank(x, target, ["shift(0.1)", "gain(6)"], rate=4000, effort=0, epochs=4)
    assert found.dataset["task"] == ("multi-label" if several else "regression")
    assert all(row.low <= row.gain <= row.high for row in found.rows)
    assert any("not checked" in warning for warning in found.warnings)
