"""Families of series beside slow twins that go value by value."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.signal import hilbert

from augury._base.rng import Rng
from augury.augmentations import (
    channel_dropout,
    crop,
    default_augmentations,
    drift,
    frequency_mask,
    frequency_shift,
    magnitude_warp,
    permutation,
    shift,
    sign_flip,
    time_flip,
    time_mask,
    time_warp,
    window_slice,
    window_warp,
)
from augury.augmentations.series import curves

SERIES = np.random.default_rng(0).normal(size=(2, 23)).cumsum(axis=1)
X = torch.from_numpy(SERIES)[None, None]


def read(values, position):
    """The series at a position between its values; its ends are held."""
    position = min(max(position, 0.0), len(values) - 1.0)
    left = min(int(position), len(values) - 2)
    return values[left] + (position - left) * (values[left + 1] - values[left])


def check(got, where):
    expected = [[read(channel, where(t)) for t in range(23)] for channel in SERIES]
    np.testing.assert_allclose(got[0, 0].numpy(), expected, atol=1e-6)


def params(*values):
    return torch.tensor([[values]], dtype=torch.float64)


def test_shift():
    check(shift(0.5).apply(X, torch.tensor([[0.2]])), lambda t: t - 0.2 * 23)


@pytest.mark.parametrize(("width", "place"), [(0.0, 0.0), (0.5, 0.7), (1.0, 0.3)])
def test_window_slice(width, place):
    wide = 0.6 + 0.4 * width
    got = window_slice(0.6).apply(X, params(width, place))
    check(got, lambda t: 22 * (place * (1 - wide) + wide * t / 22))


def test_crop_holds_the_ends_of_its_window():
    start, end = 0.5 * 0.4 * 22, (0.5 * 0.4 + 0.6) * 22
    check(crop(0.6).apply(X, torch.tensor([[0.5]])), lambda t: min(max(t, start), end))


@pytest.mark.parametrize("length", [22, 23])
def test_frequency_shift_moves_the_analytic_signal(length):
    series = SERIES[:, :length]
    got = frequency_shift(0.2).apply(
        torch.from_numpy(series)[None, None], torch.tensor([[0.1]], dtype=torch.float64)
    )
    mean = series.mean(axis=1, keepdims=True)
    turned = hilbert(series - mean) * np.exp(1j * np.pi * 0.1 * np.arange(length))
    np.testing.assert_allclose(got[0, 0].numpy(), mean + turned.real, atol=1e-9)


def test_frequency_shift_moves_a_tone():
    time = np.arange(400)
    tone = torch.from_numpy(np.cos(np.pi * 0.3 * time))[None, None, None]
    got = frequency_shift(0.2).apply(tone, torch.tensor([[0.1]], dtype=torch.float64))
    spectrum = np.abs(np.fft.rfft(got[0, 0, 0].numpy()))
    assert int(spectrum.argmax()) == 0.4 * 200


@pytest.mark.parametrize(("coin", "factor"), [(0.1, 0.5), (0.9, 2.0)])
def test_window_warp_walks_through_its_window_at_another_speed(coin, factor):
    """The new times of the old values, by walking along them; then read between them."""
    got = window_warp(0.25).apply(X, params(0.4, coin))
    start, end = 0.4 * 0.75, 0.4 * 0.75 + 0.25
    fine = np.linspace(0, 1, 100_001)
    speed = np.where((fine >= start) & (fine < end), factor, 1.0)  # new time for a step of old
    passed = np.concatenate([[0], np.cumsum(speed[:-1])])
    passed /= passed[-1]
    for t in range(23):
        old = 22 * np.interp(t / 22, passed, fine)
        np.testing.assert_allclose(
            got[0, 0, :, t].numpy(), [read(c, old) for c in SERIES], atol=2e-3
        )


def test_time_warp_keeps_the_ends_and_the_order():
    keys = Rng(0, torch.arange(50)).key(4)
    at = torch.linspace(0, 1, 101, dtype=torch.float64)
    times = time_warp(0.8).times(keys, at)
    assert float(times[..., 0].abs().max()) == 0
    assert float((times[..., -1] - 1).abs().max()) < 1e-12
    assert bool((times.diff(dim=-1) > 0).all())
    mild = time_warp(0.1).times(keys, at)
    assert float((times - at).std()) > 4 * float((mild - at).std())


def test_curves_are_smooth_and_of_unit_spread_at_their_knots():
    keys = Rng(0, torch.arange(4000)).key(2)
    values = curves(keys, torch.zeros(31, dtype=torch.float64))
    for knot in (0, 10, 20, 30):
        assert float(values[..., knot].std()) == pytest.approx(1, abs=0.03)
    assert float(values.diff(dim=-1).abs().mean()) < 0.15


def test_magnitude_warp_and_drift_follow_their_curve():
    keys = Rng(0, torch.arange(1)).key(1)
    curve = curves(keys, X[0, 0, 0]).unsqueeze(2)
    torch.testing.assert_close(magnitude_warp(0.3).apply(X, keys), X * (1 + 0.3 * curve))
    torch.testing.assert_close(drift(0.3).apply(X, keys), X + 0.3 * curve)


def test_permutation_puts_whole_pieces_in_the_drawn_order():
    order = [2, 0, 3, 1]
    edges = [k * 23 // 4 for k in range(5)]
    expected = np.concatenate([SERIES[:, edges[k] : edges[k + 1]] for k in order], axis=1)
    got = permutation(4).apply(X, torch.tensor([[order]]))
    np.testing.assert_array_equal(got[0, 0].numpy(), expected)
    drawn = permutation(3).draw(2, Rng(0, torch.arange(3000))).flatten(0, 1)
    orders, counts = drawn.unique(dim=0, return_counts=True)
    assert len(orders) == 6
    assert float((counts - 1000).abs().max()) < 150


def test_time_mask_makes_a_gap():
    got = time_mask(0.5).apply(X, params(0.8, 0.5))[0, 0].numpy()
    inside = [0.3 <= (t + 0.5) / 23 < 0.7 for t in range(23)]
    np.testing.assert_array_equal(got, np.where(inside, 0, SERIES))


def test_frequency_mask_removes_a_band():
    got = frequency_mask(0.5).apply(X, params(0.8, 0.5))[0, 0].numpy()
    inside = np.array([0.3 <= (k + 0.5) / 12 < 0.7 for k in range(12)])
    spectrum = np.fft.rfft(SERIES, axis=1)
    np.testing.assert_allclose(np.fft.rfft(got, axis=1), np.where(inside, 0, spectrum), atol=1e-9)


def test_channel_dropout_leaves_a_channel():
    x = torch.ones(2000, 3, 5, dtype=torch.float64)
    views = channel_dropout(0.9).views(x, 2, Rng(0, torch.arange(2000)))
    kept = views.mean(-1).sum(-1)
    assert float(kept.min()) >= 1
    mild = channel_dropout(0.2).views(x, 2, Rng(0, torch.arange(2000)))
    assert float(mild.mean()) == pytest.approx(1 - 0.2 + 0.2**3 / 3, abs=0.01)
    one = torch.rand(4, 1, 5)
    assert torch.equal(channel_dropout(0.9).views(one, 1, Rng(0, torch.arange(4)))[0], one)


def test_flips():
    np.testing.assert_array_equal(
        time_flip().apply(X, torch.tensor([[1]]))[0, 0].numpy(), SERIES[:, ::-1]
    )
    np.testing.assert_array_equal(sign_flip().apply(X, torch.tensor([[1]]))[0, 0].numpy(), -SERIES)


def test_series_of_one_value_stay_finite():
    x = torch.ones(3, 1, 1)
    for augmentation in default_augmentations("series", (1, 1)):
        views = augmentation.views(x, 2, Rng(0, torch.arange(3)))
        assert bool(views.isfinite().all()), augmentation
    names = {type(a).__name__ for a in default_augmentations("series", (1, 1))}
    assert "channel_dropout" not in names
