"""Families of series beside tsaug's operations, given what tsaug drew.

tsaug draws inside its operations. What it drew is read off a series on which it can be seen: the
times of a warp off a ramp, a drift off zeros. Equal are Reverse (time_flip), Crop with resize
(window_slice), Crop (crop), TimeWarp's reading (time_warp), Drift's adding (drift) and
multiplying (magnitude_warp), AddNoise's law (jitter) and Dropout's filling (feature_dropout).

Different on purpose, and said in the docs: the random curves. tsaug's TimeWarp draws speeds
uniformly in a ratio, its Drift is a random walk that begins at 0 and is scaled to its largest
value and the series' range. augury's curves are normal at four knots (Um et al., 2017), in
standard deviations of the channel. tsaug has no window warp, permutation, masks, frequency shift,
channel dropout or sign flip.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from augury._base.rng import Rng
from augury.augmentations import crop, feature_dropout, jitter, time_flip, time_warp, window_slice
from augury.augmentations import series as ours

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # tsaug imports a moved name of SciPy's
    tsaug = pytest.importorskip("tsaug")

LENGTH = 41
SERIES = np.random.default_rng(0).normal(size=(5, LENGTH, 2)).cumsum(axis=1)
"""Examples × time × channels, as tsaug has them."""
X = torch.from_numpy(SERIES.transpose(0, 2, 1).copy()).unsqueeze(0)
RAMP = np.arange(LENGTH, dtype=float)[None, :, None].repeat(5, 0).repeat(2, 2)


def same(got: torch.Tensor, theirs: np.ndarray) -> None:
    np.testing.assert_allclose(got[0].numpy().transpose(0, 2, 1), theirs, atol=1e-6)


class Given(ours.Retimed):
    """Reads at given times, as every family of times does."""

    def draw(self, n, rng):
        raise NotImplementedError

    def times(self, params, at):
        return params


def test_time_flip_is_reverse():
    same(time_flip().apply(X, torch.tensor([[1]])), tsaug.Reverse().augment(SERIES))


def test_time_warp_reads_as_timewarp_does():
    warp = tsaug.TimeWarp(n_speed_change=3, max_speed_ratio=3, seed=1)
    at = torch.from_numpy(warp.augment(RAMP)[:, :, 0] / (LENGTH - 1)).unsqueeze(0)
    assert float((at - torch.linspace(0, 1, LENGTH)).abs().max()) > 0.02
    same(Given().apply(X, at), warp.augment(SERIES))
    keys = Rng(0, torch.arange(5)).key(1)
    own = time_warp(0.4).times(keys, torch.linspace(0, 1, LENGTH, dtype=torch.float64))
    same(time_warp(0.4).apply(X, keys), Given().apply(X, own)[0].mT.numpy())


@pytest.mark.parametrize("size", [25, 33])
def test_window_slice_is_crop_with_resize(size):
    cut = tsaug.Crop(size=size, resize=LENGTH, seed=2)
    start = cut.augment(RAMP)[:, 0, 0]
    wide = (size - 1) / (LENGTH - 1)
    params = torch.tensor([[[0.0, s / (LENGTH - 1) / (1 - wide)] for s in start]])
    same(window_slice(wide).apply(X, params.double()), cut.augment(SERIES))


def test_crop_keeps_the_window_of_crop():
    size = 21
    cut = tsaug.Crop(size=size, seed=3)
    start = cut.augment(RAMP)[:, 0, 0]
    wide = (size - 1) / (LENGTH - 1)
    params = torch.from_numpy(start / (LENGTH - 1) / (1 - wide)).unsqueeze(0)
    got = crop(wide).apply(X, params)[0].numpy()
    for k, first in enumerate(start.astype(int)):
        window = got[k, :, first : first + size].T
        np.testing.assert_allclose(window, cut.augment(SERIES)[k], atol=1e-6)


@pytest.mark.parametrize("kind", ["additive", "multiplicative"])
def test_drift_and_magnitude_warp_do_what_drift_does_with_its_curve(kind):
    drift = tsaug.Drift(max_drift=0.5, kind=kind, normalize=False, per_channel=False, seed=4)
    plain = np.zeros_like(RAMP) if kind == "additive" else np.ones_like(RAMP)
    curve = torch.from_numpy(drift.augment(plain).transpose(0, 2, 1).copy()).unsqueeze(0)
    family = ours.drift(1.0) if kind == "additive" else ours.magnitude_warp(1.0)
    keys = Rng(0, torch.arange(5)).key(1)
    own = family.apply(torch.from_numpy(plain.transpose(0, 2, 1).copy()).unsqueeze(0), keys)
    # both are x + curve, or x × curve, whatever the curve
    same(X + curve if kind == "additive" else X * curve, drift.augment(SERIES))
    torch.testing.assert_close(family.apply(X, keys), X + own if kind == "additive" else X * own)


def test_jitter_has_the_law_of_add_noise():
    theirs = tsaug.AddNoise(scale=0.3, normalize=False, seed=5).augment(np.zeros((400, 50, 2)))
    ours_ = jitter(0.3).views(torch.zeros(400, 2, 50), 1, Rng(0, torch.arange(400)))
    assert float(ours_.std()) == pytest.approx(theirs.std(), rel=0.02)
    assert abs(float(ours_.mean()) - theirs.mean()) < 0.01


def test_feature_dropout_is_dropout_of_single_values():
    drop = tsaug.Dropout(p=0.3, size=1, fill=0.0, per_channel=True, seed=6)
    theirs = drop.augment(np.ones((400, 51, 2)))[:, :-1]  # tsaug never drops the last value
    views = feature_dropout(0.3).views(torch.ones(400, 2, 50), 1, Rng(0, torch.arange(400)))
    assert set(np.unique(theirs)) == set(views.unique().tolist()) == {0.0, 1.0}
    assert float(views.mean()) == pytest.approx(theirs.mean(), abs=0.01)
