"""Code for audiomentations: the same series for the same draw."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from observed import load

import augury
from augury.augmentations import FAMILIES, parse

SERIES = np.random.default_rng(0).normal(size=(2, 200)).astype(np.float32)


@pytest.mark.parametrize(
    ("spec", "low", "high"), [("shift(0.3)", -0.3, 0.3), ("scaling(0.5,1.5)", 0.5, 1.5)]
)
def test_one_parameter(spec, low, high, monkeypatch):
    augment = load(augury.export(spec, to="audiomentations"))["augment"]
    for share in np.linspace(0, 1, 7):
        asked = []
        monkeypatch.setattr(
            np.random,
            "uniform",
            lambda a, b, share=share, asked=asked: asked.append((a, b)) or a + share * (b - a),
        )
        out = augment(SERIES, 16000)
        monkeypatch.undo()
        assert asked == [(low, high)]
        params = torch.tensor([[low + share * (high - low)]], dtype=torch.float32)
        mine = parse(spec).apply(torch.from_numpy(SERIES)[None, None], params)[0, 0]
        np.testing.assert_allclose(out, mine.numpy(), atol=2e-4)
        assert out.dtype == np.float32


def test_noise_and_dropout():
    noisy = load(augury.export("jitter(0.2)", to="audiomentations"))["augment"](SERIES, 16000)
    assert np.std(noisy - SERIES) == pytest.approx(0.2, rel=0.15)
    dropped = load(augury.export("feature_dropout(0.3)", to="audiomentations"))["augment"]
    out = np.concatenate([dropped(SERIES, 16000) for _ in range(20)])
    assert np.mean(out == 0) == pytest.approx(0.3, abs=0.03)
    kept = np.tile(SERIES, (20, 1))[out != 0]
    np.testing.assert_array_equal(out[out != 0], kept)


def test_every_family_of_series_runs():
    for name, family in FAMILIES.items():
        if "series" in family.kinds:
            for samples in (SERIES, SERIES[0]):
                augment = load(augury.export(name, to="audiomentations"))["augment"]
                out = augment(samples.copy(), 16000)
                assert out.shape == samples.shape, name
                assert out.dtype == np.float32, name
