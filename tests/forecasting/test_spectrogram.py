"""What a trial's network sees of sound."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from augury.augmentations import gain, identity, parse
from augury.data import as_dataset
from augury.forecasting.rank import rank
from augury.forecasting.training import train_together
from augury.forecasting.training.spectrogram import (
    AsItIs,
    LogMel,
    count_views,
    front_end,
    mel_bands,
)


@pytest.mark.parametrize(("rate", "bins"), [(8000, 129), (16000, 257), (44100, 1025)])
def test_bands_are_librosas(rate, bins):
    librosa = pytest.importorskip("librosa")
    expected = librosa.filters.mel(sr=rate, n_fft=2 * (bins - 1), n_mels=40, htk=True, norm=None)
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(mel_bands(rate, bins, 40), expected, atol=1e-5)


def slow_bands(rate, bins, count):
    """Triangles on the mel scale, bin by bin; a band without a bin gets the nearest one."""
    highest = 2595 * math.log10(1 + rate / 2 / 700)
    edges = [700 * (10 ** (highest * k / (count + 1) / 2595) - 1) for k in range(count + 2)]
    hertz = [rate / 2 * b / (bins - 1) for b in range(bins)]
    bands = np.zeros((count, bins))
    for k in range(count):
        low, middle, high = edges[k : k + 3]
        for b, f in enumerate(hertz):
            if low < f < high:
                rising = f <= middle
                bands[k, b] = (f - low) / (middle - low) if rising else (high - f) / (high - middle)
        if not bands[k].any():
            bands[k, int(np.argmin([abs(f - middle) for f in hertz]))] = 1
    return bands / bands.sum(1, keepdims=True)


@pytest.mark.parametrize(("rate", "bins"), [(8000, 129), (16000, 257), (8000, 9), (2000, 33)])
def test_bands_are_triangles_on_the_mel_scale(rate, bins):
    np.testing.assert_allclose(mel_bands(rate, bins, 40), slow_bands(rate, bins, 40), atol=1e-5)


def test_a_spectrogram_by_hand():
    """Windows of 32 ms at 4 kHz are 128 samples, a half of one apart, with zeros at the ends."""
    front = LogMel(4000, 512)
    assert (front.size, front.hop, front.shape) == (128, 64, (1, 32, 9))
    wave = np.random.default_rng(0).normal(size=512)
    padded = np.concatenate([np.zeros(64), wave, np.zeros(64)])
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(128) / 128)
    frames = [np.fft.rfft(window * padded[64 * k : 64 * k + 128]) for k in range(9)]
    power = np.abs(np.array(frames).T) ** 2 / np.sum(window**2)
    mel = slow_bands(4000, 65, 32) @ power
    expected = (np.log10(mel / mel.mean() + 1e-5) + 2) / 1.5
    found = front(torch.from_numpy(wave).float().view(1, 1, -1))[0, 0]
    np.testing.assert_allclose(found, expected, atol=2e-4)


@pytest.mark.parametrize(
    ("rate", "samples", "size", "frames"),
    [
        (16000, 16000, 512, 32),
        (8000, 5000, 256, 32),
        (8000, 600, 256, 5),
        (8000, 200, 128, 4),  # no window is longer than the clip
        (44100, 44100, 1024, 32),
        (1000, 3, 2, 4),
    ],
)
def test_windows_and_frames(rate, samples, size, frames):
    front = LogMel(rate, samples)
    assert (front.size, front.hop) == (size, size // 2)
    assert front.shape == (1, 32, frames)


def test_narrow_bands_get_the_nearest_bin():
    bands = mel_bands(8000, 9, 40)
    np.testing.assert_allclose(bands.sum(1), 1, atol=1e-6)


@pytest.mark.parametrize(("rate", "samples"), [(8000, 5000), (16000, 80000), (8000, 20), (1000, 8)])
def test_shapes(rate, samples):
    front = LogMel(rate, samples)
    out = front(torch.randn(3, 2, 1, samples))
    assert out.shape == (3, 2, *front.shape)
    assert front.shape[1] == 32
    assert front.shape[2] <= 32
    assert bool(out.isfinite().all())


def test_white_noise_has_the_same_power_everywhere():
    """All bands are at the clip's level, so log₁₀ 1 = 0; silence is the floor; no loudness."""
    noise = torch.randn(50, 1, 16000, generator=torch.Generator().manual_seed(0))
    out = LogMel(16000, 16000)(noise).mean(dim=(0, 1, 3))
    assert float((out * 1.5 - 2).abs().max()) < 0.25
    louder = LogMel(16000, 16000)(30 * noise[:2])
    torch.testing.assert_close(louder, LogMel(16000, 16000)(noise[:2]), atol=1e-4, rtol=0)
    silence = LogMel(16000, 16000)(torch.zeros(1, 1, 16000))
    torch.testing.assert_close(silence, torch.full_like(silence, (-5 + 2) / 1.5))


def test_a_tone_lights_its_band():
    time = torch.arange(8000) / 8000
    out = LogMel(8000, 8000)(torch.sin(2 * torch.pi * 1000 * time)[None, None])[0, 0].mean(1)
    expected = 33 * np.log10(1 + 1000 / 700) / np.log10(1 + 4000 / 700) - 1
    assert abs(int(out.argmax()) - expected) <= 1


def tones(seed: int, count: int = 120, rate: int = 2000):
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 2
    time = np.arange(800) / rate
    hertz = np.where(y == 0, 200, 400)[:, None] * rng.uniform(0.95, 1.05, (count, 1))
    x = np.sin(2 * np.pi * hertz * time + rng.uniform(0, 6, (count, 1)))
    return as_dataset(x + rng.normal(size=x.shape), y, rate=rate)


def test_networks_learn_from_spectrograms():
    """Phases are random, so nothing short of frequencies tells these classes apart."""
    train, test = tones(0), tones(1)
    assert isinstance(front_end(train), LogMel)
    found = train_together(
        train, test, [identity(), gain(3)], architecture="small", seeds=1, epochs=40,
        device=torch.device("cpu"),
    )  # fmt: skip
    assert float(found.accuracy.min()) > 0.95


def test_rank_judges_sound():
    found = rank(tones(0), augmentations=["gain(3)", "snr_noise(0,10)"], epochs=4, effort=3)
    assert found.dataset["kind"] == "sound"
    assert found.dataset["rate"] == 2000
    assert {row.augmentation for row in found.rows} == {"gain(3)", "snr_noise(0,10)"}


def test_other_data_is_seen_as_it_is():
    data = as_dataset(np.random.default_rng(0).normal(size=(6, 3)), [0, 1] * 3)
    front = front_end(data)
    assert isinstance(front, AsItIs)
    assert (front.work, front.views, front.dtype) == (1, None, torch.float32)
    assert (LogMel.work, LogMel.views, LogMel.dtype) == (32, 8, torch.float16)
    x = torch.rand(2, 3)
    assert front(x) is x
    assert parse("jitter(0.1)").kinds >= {"vector"}


def test_images_are_seen_in_a_few_views_where_views_are_dear():
    pixels = np.random.default_rng(0).integers(0, 256, (8, 6, 6), dtype=np.uint8)
    pictures = as_dataset(pixels, [0, 1] * 4)
    rows = as_dataset(np.random.default_rng(0).normal(size=(6, 3)), [0, 1] * 3)
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    for data, expected in ((pictures, [10, None]), (tones(0), [8, 8]), (rows, [None, None])):
        assert [count_views(data, device) for device in (cpu, gpu)] == expected


def test_a_network_of_ones_own_hears_the_waveform():
    seen = []

    class Ear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(800, 2)

        def forward(self, x):
            seen.append(x.shape[1:])
            return self.layer(x.flatten(1))

    rank(tones(0), augmentations=["gain(3)"], network=Ear(), score="trial", epochs=2, effort=3)
    assert set(seen) == {(1, 800)}
