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
    ("spec", "low", "high"),
    [
        ("shift(0.3)", -0.3, 0.3),
        ("scaling(0.5,1.5)", 0.5, 1.5),
        ("clipping(0.3)", 0, 0.3),
        ("clipping(0.01)", 0, 0.01),
    ],
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
        if {"series", "sound"} & family.kinds:
            # frames of 2,048 samples are the longest that a transform takes
            given = SERIES if "series" in family.kinds else np.tile(SERIES, 12)
            for samples in (given, given[0]):
                augment = load(augury.export(name, to="audiomentations"))["augment"]
                out = augment(samples.copy(), 16000)
                assert out.shape == samples.shape, name
                assert out.dtype == np.float32, name


WAVE = (0.3 * np.sin(0.3 * np.arange(4000)) * np.hanning(4000)).astype(np.float32)


@pytest.mark.parametrize(
    ("spec", "code", "draw", "params"),
    [
        ("gain(9)", "am.Gain(min_gain_db=-9, max_gain_db=9", {"amplitude_ratio": 2.0}, 6.0206),
        ("sign_flip", "am.PolarityInversion(p=0.5)", {}, 1),
        ("time_flip", "am.Reverse(p=0.5)", {}, 1),
        ("time_mask(0.5)", "max_band_part=0.5", {"t": 1000, "t0": 500}, (0.5, 1 / 6)),
    ],
)
def test_the_same_sound_for_the_same_draw(spec, code, draw, params):
    text = augury.export(spec, to="audiomentations")
    assert code in text
    step = load(text)["augment"].transforms[0]
    step.parameters = {"should_apply": True, **draw}
    expected = step.apply(WAVE.copy(), 8000)
    mine = parse(spec).apply(torch.from_numpy(WAVE)[None, None, None], torch.tensor([[params]]))
    np.testing.assert_allclose(mine[0, 0, 0].numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("fraction", [0.01, 0.02, 0.05])
def test_weak_clipping_changes_every_view(fraction):
    """The library's own steps of two percent leave views as they are, or all of them."""
    augment = load(augury.export(f"clipping({fraction})", to="audiomentations"))["augment"]
    assert all((augment(WAVE.copy(), 8000) != WAVE).any() for _ in range(50))


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ("snr_noise(3,9)", "am.AddGaussianSNR(min_snr_db=3, max_snr_db=9, p=1.0)"),
        ("snr_noise(6,6,colour=2)", "min_f_decay=-6.02, max_f_decay=-6.02"),
    ],
)
def test_noise_has_its_ratio(spec, code):
    text = augury.export(spec, to="audiomentations")
    assert code in " ".join(text.split()).replace("( ", "(").replace(", )", ")")
    augment = load(text)["augment"]
    noise = np.concatenate([augment(WAVE, 8000) - WAVE for _ in range(40)])
    ratio = 20 * np.log10(np.std(WAVE) / np.std(noise))
    assert ratio == pytest.approx(6, abs=1)


def test_pitch_is_written_for_librosa():
    assert 'method="librosa_phase_vocoder"' in augury.export("pitch(3)", to="audiomentations")


def test_sound_is_not_for_images():
    with pytest.raises(augury.AuguryError, match="torchvision is for images, but pitch"):
        augury.export("pitch(3)", to="torchvision")
