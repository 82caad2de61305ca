"""Families of sound beside audiomentations', librosa's and SciPy's operations."""

from __future__ import annotations

import math
import re

import audiomentations as am
import librosa
import numpy as np
import pytest
import scipy.signal
import torch

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import (
    background,
    band_pass,
    clipping,
    default_augmentations,
    frequency_mask,
    gain,
    parse,
    pitch,
    reverb,
    shift,
    sign_flip,
    snr_noise,
    speed,
    strength_ladder,
    time_mask,
)
from augury.augmentations.playback import interpolate, stretch
from augury.augmentations.sound import butterworth, coloured

RATE = 8000


def speech(length: int = 4096) -> np.ndarray:
    """Voiced sounds that rise and fall, silent at both ends."""
    t = np.arange(length) / RATE
    rng = np.random.default_rng(0)
    tones = sum(
        np.sin(2 * np.pi * f * t + rng.uniform(0, 6)) / k
        for k, f in enumerate((210, 430, 900, 1700), 1)
    )
    return (0.2 * tones * np.hanning(length) ** 2).astype(np.float64)


WAVE = speech()
X = torch.from_numpy(WAVE)[None, None, None]


def at(value: float) -> torch.Tensor:
    return torch.tensor([[value]], dtype=torch.float64)


def theirs(transform, **parameters) -> np.ndarray:
    """Apply a transform of audiomentations with parameters of our choice."""
    transform.parameters = {"should_apply": True, **parameters}
    return transform.apply(WAVE.astype(np.float32), RATE)


def ours(augmentation, params) -> np.ndarray:
    return augmentation.apply(X, params)[0, 0, 0].numpy()


def test_gain_is_that_of_audiomentations():
    for decibels in (-9.0, 4.0):
        expected = theirs(am.Gain(-12, 12), amplitude_ratio=10 ** (decibels / 20))
        np.testing.assert_allclose(ours(gain(12), at(decibels)), expected, atol=1e-6)


def test_polarity_is_that_of_audiomentations():
    got = ours(sign_flip(), torch.tensor([[1]]))
    np.testing.assert_allclose(got, theirs(am.PolarityInversion()), atol=1e-6)


def test_shift_is_that_of_audiomentations_where_ends_are_silent():
    for steps in (-300, 200):
        shifted = am.Shift(shift_unit="samples", rollover=False, fade_duration=0)
        expected = theirs(shifted, shift_amount=steps)
        np.testing.assert_allclose(ours(shift(0.5), at(steps / len(WAVE))), expected, atol=1e-6)


def test_time_mask_is_that_of_audiomentations():
    length = len(WAVE)
    expected = theirs(am.TimeMask(fade_duration=0), t=length // 4, t0=length // 2)
    # width ½ of (0, ½), begun at ⅔ of what is left: from ½ to ¾
    got = ours(time_mask(0.5), torch.tensor([[[0.5, 2 / 3]]], dtype=torch.float64))
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_clipping_is_that_of_audiomentations():
    expected = theirs(am.ClippingDistortion(), percentile_threshold=30)
    np.testing.assert_allclose(ours(clipping(0.5), at(0.3)), expected, atol=1e-6)


def test_noise_has_the_level_of_audiomentations():
    """AddGaussianSNR draws noise of the same standard deviation; its values are its own."""
    transform = am.AddGaussianSNR(min_snr_db=7, max_snr_db=7, p=1.0)
    transform.randomize_parameters(WAVE.astype(np.float32), RATE)
    keys = Rng(0, torch.arange(1)).key(1)
    noise = ours(snr_noise(7, 7), (at(7.0), keys)) - WAVE
    assert np.std(noise) == pytest.approx(transform.parameters["noise_std"], rel=1e-2)
    assert np.sqrt(np.mean(noise**2)) == pytest.approx(
        np.sqrt(np.mean(WAVE**2)) / 10 ** (7 / 20), rel=1e-6
    )


@pytest.mark.parametrize("colour", [-1, 0, 1, 2])
def test_coloured_noise_falls_as_it_says(colour):
    """AddColorNoise gives pink −3.01 and brown −6.02 dB an octave; so do colours 1 and 2 here."""
    white = torch.from_numpy(np.random.default_rng(0).normal(size=(300, 4096)))
    power = np.fft.rfft(coloured(white, colour).numpy()).__abs__() ** 2
    octaves = [power[:, low : 2 * low].mean() for low in (64, 128, 256, 512)]
    falls = 10 * np.log10(np.array(octaves[1:]) / octaves[:-1])
    np.testing.assert_allclose(falls, -3.01 * colour, atol=0.3)
    silent = snr_noise(0, 0).apply(
        torch.zeros(1, 1, 1, 64), (torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.int64))
    )
    assert float(silent.abs().max()) == 0


def test_band_pass_is_scipys_filter_forwards_and_backwards():
    """BandPassFilter(zero_phase=True) of audiomentations calls the same filter."""
    low, high = (float(edge) for edge in band_pass(0.5).edges(torch.tensor([0.2, 0.7])))
    sos = scipy.signal.butter(2, [2 * low, 2 * high], "bandpass", output="sos")
    expected = scipy.signal.sosfiltfilt(sos, WAVE)
    got = ours(band_pass(0.5), torch.tensor([[[0.2, 0.7]]]))
    np.testing.assert_allclose(got, expected, atol=2e-3 * np.abs(WAVE).max())
    edges = butterworth(torch.tensor([low, high]), torch.tensor(low), torch.tensor(high))
    np.testing.assert_allclose(edges, 0.5, atol=1e-3)


def test_reverb_is_a_convolution():
    """ApplyImpulseResponse convolves too, and then sets the peak to ½, which is not done here."""
    params = (at(0.3), Rng(0, torch.arange(1)).key(1))
    response = reverb(0.5).response(params, X)[0, 0, 0].numpy()
    expected = scipy.signal.fftconvolve(WAVE, response)[: len(WAVE)]
    np.testing.assert_allclose(ours(reverb(0.5), params), expected, atol=1e-9)
    assert response[0] == 1
    assert np.sum(response[1:] ** 2) == pytest.approx(0.5)
    later = np.sqrt(np.mean(response[1000:1200] ** 2) / np.mean(response[1:201] ** 2))
    assert 20 * np.log10(later) == pytest.approx(-60 * 1000 / (0.3 * len(WAVE)), abs=2)


@pytest.mark.parametrize("factor", [0.7, 0.95, 1.1, 1.5])
def test_speed_reads_a_band_limited_sound(factor):
    """The middle stays in the middle; torchaudio's Speed keeps the beginning."""
    length = 4096
    time = torch.arange(length, dtype=torch.float64)
    middle = (length - 1) / 2

    def sound(t):
        return torch.exp(-(((t - middle) / 300) ** 2)) * torch.cos(0.8 * (t - middle))

    got = speed(1.0).apply(sound(time)[None, None, None], at(factor))[0, 0, 0]
    torch.testing.assert_close(got, sound(middle + (time - middle) * factor), atol=1e-9, rtol=0)


def test_speed_is_librosas_resampling():
    wave = speech(4097)
    got = speed(1.0).apply(torch.from_numpy(wave)[None, None, None], at(0.5))[0, 0, 0].numpy()
    resampled = librosa.resample(wave, orig_sr=RATE, target_sr=2 * RATE)
    np.testing.assert_allclose(got, resampled[2048 : 2048 + 4097], atol=1e-3 * np.abs(wave).max())


def test_speed_leaves_out_what_it_cannot_hold():
    high = torch.cos(2.8 * torch.arange(2000, dtype=torch.float64))[None, None, None]
    assert float(speed(1.0).apply(high, at(1.5)).abs()[..., 500:-500].max()) < 0.02
    slow = speed(1.0).apply(high, at(1 / 1.5))
    assert float(slow.std()) == pytest.approx(float(high.std()), rel=0.05)
    fast = speed(1.0).apply(torch.ones(1, 1, 1, 900, dtype=torch.float64), at(2.0))[0, 0, 0]
    assert float(fast[:220].abs().max()) == 0
    assert float(fast[-220:].abs().max()) == 0


def test_stretch_is_librosas_phase_vocoder():
    frames = librosa.stft(WAVE, n_fft=512, hop_length=128, pad_mode="constant")
    for ratio in (0.83, 1.29):
        expected = librosa.phase_vocoder(frames, rate=1 / ratio, hop_length=128, n_fft=512)
        got = stretch(torch.from_numpy(frames)[None], at(ratio)[0], 0.25, ratio)[0].numpy()
        count, kept = min(got.shape[1], expected.shape[1]), int(256 / max(1, ratio))
        scale = np.abs(expected).max()
        np.testing.assert_allclose(got[:kept, :count], expected[:kept, :count], atol=1e-5 * scale)


@pytest.mark.parametrize("semitones", [-4.0, -1.5, 2.5])
def test_pitch_is_librosas(semitones):
    """PitchShift(method="librosa_phase_vocoder") calls it; here a frame has 512 samples."""
    expected = librosa.effects.pitch_shift(
        WAVE, sr=RATE, n_steps=semitones, n_fft=512, hop_length=128
    )
    got = ours(pitch(6), at(semitones))
    assert np.sqrt(np.mean((got - expected) ** 2) / np.mean(expected**2)) < 0.03


def test_pitch_moves_a_tone_and_keeps_its_length():
    tone = torch.sin(0.3 * torch.arange(8000, dtype=torch.float64))[None, None, None]
    for semitones in (-5.0, 0.0, 3.0):
        got = pitch(6).apply(tone, at(semitones))[0, 0, 0, 1000:7000]
        spectrum = torch.fft.rfft(got * torch.hann_window(6000, dtype=torch.float64)).abs()
        frequency = 2 * math.pi * float(spectrum.argmax()) / 6000
        assert frequency == pytest.approx(0.3 * 2 ** (semitones / 12), abs=2e-3)
    short = torch.rand(2, 3, 1, 5)
    assert pitch(2).apply(short, torch.zeros(2, 3)).equal(short)


def test_interpolation_between_samples():
    wave = torch.sin(0.5 * torch.arange(400, dtype=torch.float64))[None]
    places = torch.linspace(50, 350, 777, dtype=torch.float64)[None]
    torch.testing.assert_close(interpolate(wave, places), (0.5 * places).sin(), atol=0.03, rtol=0)
    whole = torch.arange(400, dtype=torch.float64)[None]
    torch.testing.assert_close(interpolate(wave, whole), wave, atol=1e-9, rtol=0)


def test_frequency_mask_makes_a_gap_in_the_spectrogram():
    """torchaudio's FrequencyMasking writes a value into bands; here the wave has nothing there."""
    white = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 1, 1, 8000)))
    got = frequency_mask(0.5).apply(white, torch.tensor([[[0.5, 0.4]]], dtype=torch.float64))
    _, _, spectrum = scipy.signal.stft(got[0, 0, 0].numpy(), nperseg=256)
    power = (np.abs(spectrum) ** 2).mean(1) / (np.abs(spectrum) ** 2).mean()
    gap = [0.3 < k / 128 < 0.55 for k in range(129)]  # from 0.4 × ¾ on, a quarter wide
    inside = np.flatnonzero(gap)[3:-3]
    assert power[inside].max() < 1e-3
    assert power[:35].min() > 0.3


def test_defaults_and_ladders():
    candidates = default_augmentations("sound", (1, 4000))
    assert len(candidates) >= 20
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 1, 4000))).float()
    for candidate in (*candidates, *strength_ladder("sound")):
        candidate.check((1, 4000))
        views = candidate.views(x, 2, Rng(0, torch.arange(3)))
        assert views.shape == (2, 3, 1, 4000)
        assert bool(views.isfinite().all()), candidate
        assert "sound" in candidate.kinds
    silence = torch.zeros(2, 1, 700)
    for candidate in candidates:
        views = candidate.views(silence, 1, Rng(0, torch.arange(2)))
        assert bool(views.isfinite().all()), candidate


def test_magnitudes_grow_along_ladders():
    for family in (gain, snr_noise, clipping, band_pass, reverb, speed, pitch):
        sizes = [family(*setting).magnitude for setting in family.ladder]
        assert sizes == sorted(sizes), family
    assert snr_noise(5, 15, colour=1).magnitude is None  # a curve is of one colour


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("gain(0)", "gain(0): expected decibels in (0, 100]"),
        ("snr_noise(5,2)", "−60 ≤ low ≤ high ≤ 120 dB"),
        ("snr_noise(1,2,colour=9)", "a colour from −4 to 4"),
        ("clipping(1)", "a fraction in (0, 1)"),
        ("band_pass(1)", "a fraction in (0, 1)"),
        ("reverb(-1)", "a fraction in (0, 4]"),
        ("speed(9)", "a strength in (0, 3]"),
        ("pitch(30)", "semitones in (0, 24]"),
    ],
)
def test_wrong_settings(spec, says):
    with pytest.raises(AuguryError, match=re.escape(says)):
        parse(spec)


def test_background_is_mixed_at_its_ratio_from_anywhere():
    """As AddBackgroundNoise, which draws recordings evenly instead of by their length."""
    noise = np.random.default_rng(0).normal(size=1000)
    mixed = background(noise, 6, 6, "noise/")
    assert repr(mixed) == "background(noise/,6,6)"
    got = mixed.apply(X, torch.tensor([[[0.25, 0.5]]]))[0, 0, 0].numpy() - WAVE
    expected = np.resize(np.roll(noise, -250), len(WAVE))
    scale = np.sqrt(np.mean(WAVE**2) / np.mean(expected**2)) / 10 ** (6 / 20)
    np.testing.assert_allclose(got, scale * expected, atol=1e-6)
    x = torch.from_numpy(WAVE).float()[None, None].repeat(4, 1, 1)
    views = background(noise).views(x, 3, Rng(0, torch.arange(4)))
    parts = [background(noise).views(x[k : k + 1], 3, Rng(0, torch.tensor([k]))) for k in range(4)]
    torch.testing.assert_close(torch.cat(parts, 1), views)
    with pytest.raises(AuguryError, match="−60 ≤ low ≤ high ≤ 120 dB"):
        background(noise, 5, 2)
    with pytest.raises(AuguryError, match="finite samples"):
        background([], 5, 9)
