from __future__ import annotations

import numpy as np
import pytest
import reference_ridge as slow
import torch
import torch.nn.functional as F
from devices import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused

import augury
from augury.features import Composed, FourierFeatures, PatchFeatures
from augury.features import patches as patches_module
from augury.features.patches import shrink, zca


def pictures(seed, *shape, dtype=torch.float64):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def maps_of(layer, image, threshold):
    window = tuple(layer.weight.shape[-2:])
    arrays = [t.numpy() for t in (layer.filters, layer.mean, layer.whiten)]
    return slow.patch_maps(image, *arrays, float(layer.epsilon), threshold, window)


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(5, 9), st.integers(1, 4))
def test_one_layer_equals_the_slow_reference(seed, channels, side, pool):
    x = pictures(seed, 4, channels, side, side + 1)
    phi = PatchFeatures(3, pool=pool, threshold=0.3, seed=seed).fit(x)
    found = phi(x)
    for image, features in zip(x - x.mean(), found, strict=True):
        maps = maps_of(phi.first, image.numpy(), 0.3)
        cells = [min(pool, s) for s in maps.shape[1:]]
        np.testing.assert_allclose(features / phi.scale, slow.pooled(maps, cells), atol=1e-10)


@pytest.mark.parametrize("side", [8, 13])
def test_two_layers_equal_the_slow_reference(side):
    x = pictures(0, 3, 2, side, side)
    phi = PatchFeatures(3, pool=2, layers=2).fit(x)
    for image, features in zip(x - x.mean(), phi(x), strict=True):
        first = maps_of(phi.first, image.numpy(), 0.5)
        if first.shape[1] >= 8:  # averaged over windows of 2 × 2
            rows = first.shape[1] // 2 * 2
            first = first[:, :rows, :rows]
            first = (first[:, ::2] + first[:, 1::2]) / 2
            first = (first[:, :, ::2] + first[:, :, 1::2]) / 2
        reduced = np.einsum("kc,chw->khw", phi.mixing[:, :, 0, 0].numpy(), first)
        second = maps_of(phi.second, reduced, 0.5)
        cells = [min(2, s) for s in second.shape[1:]]
        np.testing.assert_allclose(features / phi.scale, slow.pooled(second, cells), atol=1e-10)


def test_series_are_images_of_height_one():
    x = pictures(1, 5, 2, 30)
    phi = PatchFeatures(4, size=5, pool=3).fit(x)
    assert phi(x).shape == (5, 2 * 4 * 3)
    for one, features in zip(x - x.mean(), phi(x), strict=True):
        maps = maps_of(phi.first, one.numpy()[:, None], 0.5)
        np.testing.assert_allclose(features / phi.scale, slow.pooled(maps, (1, 3)), atol=1e-10)


def test_whitening_equals_the_slow_reference_and_whitens():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(500, 6, generator=generator, dtype=torch.float64)
    rows = rows @ torch.randn(6, 6, generator=generator, dtype=torch.float64) + 1
    mean, matrix = zca(rows)
    expected = slow.zca(rows.numpy())
    np.testing.assert_allclose(mean, expected[0], atol=1e-12)
    np.testing.assert_allclose(matrix, expected[1], atol=1e-10)
    torch.testing.assert_close(matrix, matrix.mT)
    spread = torch.linalg.eigvalsh(((rows - mean) @ matrix).T.cov(correction=0))
    assert float(spread.max()) < 1
    assert float(spread.max() / spread.min()) < float(np.linalg.cond(np.cov(rows.T))) / 3


def test_filters_are_whitened_patches_of_the_data():
    x = pictures(2, 6, 1, 7, 7)
    layer = PatchFeatures(5, size=3, seed=4).fit(x).first
    norms = layer.filters.norm(dim=1)
    torch.testing.assert_close(norms, torch.ones_like(norms))
    patches = F.unfold(x - x.mean(), 3).transpose(1, 2).reshape(-1, 9)
    variance = patches.var(1, correction=0, keepdim=True)
    patches = (patches - patches.mean(1, keepdim=True)) / (variance + layer.epsilon).sqrt()
    mean, whiten = slow.zca(patches.numpy())  # of all patches; the layer's is of a sample
    np.testing.assert_allclose(layer.mean, mean, atol=0.05)
    np.testing.assert_allclose(layer.whiten, whiten, atol=0.05)
    whitened = F.normalize((patches - layer.mean) @ layer.whiten, dim=1)
    nearest = (layer.filters @ whitened.T).max(1).values
    torch.testing.assert_close(nearest, torch.ones_like(nearest))


def test_blank_patches_are_no_filters():
    x = torch.zeros(20, 1, 12, 12, dtype=torch.float64)
    x[:, :, 4:8, 4:8] = pictures(0, 20, 1, 4, 4)
    layer = PatchFeatures(30, size=3).fit(x).first
    blank = F.normalize(-layer.mean @ layer.whiten, dim=0)
    assert float((layer.filters @ blank).max()) < 1 - 1e-6


@pytest.mark.parametrize("layers", [1, 2])
def test_features_have_mean_square_length_one(layers):
    x = pictures(3, 40, 1, 8, 8, dtype=torch.float32)
    found = PatchFeatures(layers=layers).fit(x)(x)
    assert float(found.square().sum(1).mean()) == pytest.approx(1, rel=1e-5)
    assert bool((found >= 0).all())


@pytest.mark.parametrize("layers", [1, 2])
def test_the_size_of_the_parts_in_flight_does_not_matter(layers, monkeypatch):
    x = pictures(4, 30, 3, 10, 10)
    whole = PatchFeatures(6, layers=layers).fit(x)(x)
    monkeypatch.setitem(patches_module._MAP, "cpu", 1)
    torch.testing.assert_close(PatchFeatures(6, layers=layers).fit(x)(x), whole)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layers", [1, 2])
def test_the_device_does_not_matter_and_the_seed_does(layers, device):
    x = pictures(5, 30, 3, 12, 12, dtype=torch.float32)
    here = PatchFeatures(8, layers=layers, seed=1).fit(x)(x)
    there = PatchFeatures(8, layers=layers, seed=1).to(device).fit(x.to(device))(x.to(device))
    torch.testing.assert_close(there.cpu(), here, atol=1e-5, rtol=1e-4)
    other = PatchFeatures(8, layers=layers, seed=2).fit(x)(x)
    assert float((other - here).abs().max()) > 1e-3


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (1, 2, 3), (1, 4, 200), (2, 3), (1, 1500), (3, 90, 61)], ids=str
)
def test_small_long_and_large_examples_work(shape, layers):
    x = pictures(6, 10, *shape, dtype=torch.float32)
    found = PatchFeatures(4, layers=layers).fit(x)(x)
    assert len(found) == 10
    assert bool(found.isfinite().all())


def test_blank_data_gives_finite_features():
    x = torch.zeros(10, 1, 8, 8)
    assert bool(PatchFeatures(4).fit(x)(x).isfinite().all())


def test_large_inputs_are_shrunk():
    assert shrink((1, 28, 28)) == (1, 1)
    assert shrink((3, 41, 20)) == (2, 2)
    assert shrink((3, 200, 2)) == (5, 2)
    assert shrink((1, 512)) == (1,)
    assert shrink((1, 513)) == (2,)


def test_bad_settings_and_data_are_said():
    refused("shape (7,)|'fourier'", PatchFeatures().fit, torch.zeros(4, 7))
    refused("1 or 2 layers, not 3", PatchFeatures, layers=3)
    refused("must be 1 or more, not 0, None and 3", PatchFeatures, 0)
    refused("must be 1 or more, not 5, 0 and 3", PatchFeatures, 5, size=0)
    refused("call fit first", PatchFeatures(), torch.zeros(1, 1, 8, 8))
    vectors = np.random.default_rng(0).normal(size=(40, 5))
    refused("'fourier'", augury.rank, vectors, np.arange(40) % 2, feature_map="patches",
            score="ridge")  # fmt: skip


def test_it_says_what_it_is():
    assert PatchFeatures().describe() == "100 random whitened patches, pooled 3×3"
    assert PatchFeatures(8, pool=2, layers=2).describe() == (
        "8 random whitened patches, pooled 2×2, two layers"
    )


def test_a_kernel_on_patches_is_one_map_after_the_other():
    x = pictures(0, 12, 1, 9, 9)
    inner, outer = PatchFeatures(3), FourierFeatures(20, gamma="median")
    phi = Composed(inner, outer).fit(x)
    alone = PatchFeatures(3).fit(x)(x)
    expected = FourierFeatures(20, gamma="median").fit(alone)(alone)
    torch.testing.assert_close(phi(x), expected)
    assert phi.describe() == f"{outer.describe()} of {inner.describe()}"
