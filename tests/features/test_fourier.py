"""Fourier features against their kernels; augmented ones against transformed images."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused
from sklearn.datasets import load_digits

from augury._base.rng import Rng
from augury.augmentations import parse
from augury.features import AugmentedFourier, FourierFeatures
from augury.features.augmented import _pairs
from augury.features.frequencies import ShiftInvariantKernel, draw_dense, standard_normal
from augury.features.hadamard import HadamardFrequencies, hadamard

LAWS = settings(deadline=None, max_examples=15)
KINDS = [
    ("gaussian", "iid"),
    ("gaussian", "orthogonal"),
    ("gaussian", "hadamard"),
    ("laplacian", "iid"),
    ("matern", "iid"),
    ("matern", "orthogonal"),
    ("matern", "hadamard"),
]


def images(seed=0, b=5, shape=(1, 8, 8)):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(b, *shape, generator=generator, dtype=torch.float64)


def digits(b):
    return torch.from_numpy(load_digits().images[:b] / 16).unsqueeze(1)


def true_kernel(name, nu, x, gamma):
    """The kernel's closed form, pair by pair."""
    flat = x.flatten(1).numpy()
    out = np.zeros((len(flat), len(flat)))
    for i, a in enumerate(flat):
        for j, b in enumerate(flat):
            if name == "gaussian":
                out[i, j] = math.exp(-gamma * ((a - b) ** 2).sum())
            elif name == "laplacian":
                out[i, j] = math.exp(-gamma * np.abs(a - b).sum())
            else:
                r = math.sqrt(2 * nu) * math.sqrt(((a - b) ** 2).sum()) * math.sqrt(2 * gamma)
                out[i, j] = {0.5: 1, 1.5: 1 + r, 2.5: 1 + r + r * r / 3}[nu] * math.exp(-r)
    return out


@pytest.mark.parametrize(("kernel", "sampling"), KINDS)
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_features_approach_their_kernel_at_the_rate_of_chance(kernel, sampling, nu):
    if kernel != "matern" and nu != 1.5:
        pytest.skip("nu is for the Matérn kernel")
    x, gamma = images(b=8), 0.05 if kernel == "laplacian" else 0.1
    truth = true_kernel(kernel, nu, x, gamma)
    errors = {}
    for d in (64, 1024):
        found = []
        for seed in range(6):
            phi = FourierFeatures(
                d, kernel=kernel, nu=nu, sampling=sampling, gamma=gamma, seed=seed
            ).fit(x)
            found.append((phi(x) @ phi(x).mT).numpy())
        errors[d] = math.sqrt(((np.array(found) - truth) ** 2).mean())
        # A cosine has variance of at most ½: d/2 of them, 6 seeds, give or take.
        assert np.abs(np.mean(found, 0) - truth).mean() < 3 * math.sqrt(1 / d / 6)
        np.testing.assert_allclose(np.diagonal(found[0]), 1.0)
    assert errors[1024] < 0.45 * errors[64]


@pytest.mark.parametrize(("rows", "d"), [(300, 400), (301, 301), (5, 7)])
def test_normal_numbers_are_those_of_one_core(rows, d):
    found = standard_normal(rows, d, torch.Generator().manual_seed(3))
    expected = torch.randn(
        (rows, d), generator=torch.Generator().manual_seed(3), dtype=torch.float64
    )
    torch.testing.assert_close(found, expected, atol=1e-14, rtol=0)


def test_orthogonal_and_structured_frequencies_have_less_variance():
    x = images(b=10)
    truth = true_kernel("gaussian", 0, x, 0.1)

    def error(sampling):
        maps = [
            FourierFeatures(128, gamma=0.1, sampling=sampling, seed=s).fit(x) for s in range(20)
        ]
        return np.mean([((phi(x) @ phi(x).mT).numpy() - truth) ** 2 for phi in maps])

    plain = error("iid")
    assert error("orthogonal") < 0.8 * plain
    assert error("hadamard") < 0.8 * plain


@LAWS
@given(seed=st.integers(0, 10**6), count=st.integers(1, 70), d=st.integers(1, 40))
def test_structured_frequencies_are_a_matrix_with_orthogonal_rows(seed, count, d):
    frequencies = HadamardFrequencies(count, d, np.random.default_rng(seed)).double()
    x = torch.randn(3, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    matrix = frequencies(torch.eye(d, dtype=torch.float64)).mT
    torch.testing.assert_close(frequencies(x), x @ matrix.mT)
    if d & (d - 1) == 0 and d > 1:  # no padding: rows of one block are orthogonal
        block = matrix[: min(count, d)]
        inner = block @ block.mT
        torch.testing.assert_close(inner, inner.diagonal().diag(), atol=1e-9, rtol=0)


@pytest.mark.parametrize(("count", "d"), [(20, 50), (50, 50), (120, 50)])
def test_orthogonal_frequencies_are_so_in_blocks_and_as_long_as_gaussian_ones(count, d):
    omega = draw_dense(ShiftInvariantKernel(), "orthogonal", count, d, 0)
    assert omega.shape == (count, d)
    for rows in omega.split(d):
        square = rows @ rows.mT
        torch.testing.assert_close(square, square.diagonal().diag(), atol=1e-10, rtol=0)
    lengths = omega.square().sum(1)
    assert float(lengths.mean()) == pytest.approx(d, rel=4 * math.sqrt(2 / (d * count)))
    assert float(lengths.std()) == pytest.approx(math.sqrt(2 * d), rel=0.5)


def test_the_hadamard_matrix_is_orthogonal():
    h = hadamard(16)
    assert torch.equal(h @ h.mT, 16 * torch.eye(16))


@pytest.mark.parametrize("sampling", ["iid", "hadamard"])
@pytest.mark.parametrize(("mean", "std"), [(0.3, 2.0), ([0.1, 0.2, 0.3], [0.5, 1.0, 2.0])])
def test_normalisation_folds_into_frequencies_and_phases(sampling, mean, std):
    x = images(shape=(3, 4, 5))
    options = {"gamma": 0.1, "sampling": sampling}
    folded = FourierFeatures(32, mean=mean, std=std, **options).fit(x)
    shaped = [torch.tensor(value, dtype=torch.float64).reshape(-1, 1, 1) for value in (mean, std)]
    normalised = (x - shaped[0]) / shaped[1]
    plain = FourierFeatures(32, **options).fit(normalised)
    torch.testing.assert_close(folded(x), plain(normalised), atol=1e-12, rtol=0)


def labelled(seed=0):
    """Two classes that part at one distance, far larger than that within them."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(120) % 2
    x = torch.randn(120, 6, generator=generator, dtype=torch.float64) * 0.2
    x[:, 0] += 4.0 * y
    return x, torch.nn.functional.one_hot(y, 2).double()


def test_gamma_by_each_rule():
    x, y = labelled()
    squares = torch.cdist(x, x).square()
    median = FourierFeatures(8, gamma="median").fit(x).gamma_
    assert median == pytest.approx(1 / float(squares[squares > 0].median()))
    target = y @ y.mT

    def alignment(gamma):
        kernel = (-gamma * squares).exp()
        return float((kernel * target).sum() / kernel.norm() / target.norm())

    chosen = FourierFeatures(8, gamma="alignment").fit(x, y).gamma_
    assert all(alignment(chosen) >= alignment(chosen * f) for f in (0.25, 0.5, 2, 4))
    noisy = FourierFeatures(8, gamma="held-out").fit(x, torch.sin(3 * x[:, 1:2])).gamma_
    smooth = FourierFeatures(8, gamma="held-out").fit(x, x[:, :1]).gamma_
    assert noisy > smooth  # a wave wants a narrower kernel than a line
    assert FourierFeatures(8, gamma="alignment").fit(x).gamma_ == median  # no labels to align with


LINEAR = [
    "rotation(15)", "rotation(180)", "translation(0.2)", "scaling(0.8,1.2)", "shear(20)",
    "resized_crop(0.5)", "elastic(0.1)", "flips", "horizontal_flip", "quarter_turns",
    "vertical_flip", "pixel_shifts", "blur(0.5,2.0)", "brightness(0.3,clip=false)",
    "contrast(0.4,clip=false)", "cutout(0.3)", "identity", "rotation(10) >> blur(0.5,1.0)",
    "rotation(10) | blur(0.5,1.0)", "0.3*translation(0.1) | 0.7*flips", "flips ** 2",
    "chain(rotation(10):2, blur(0.5,1.0):1)",
]  # fmt: skip
OF_SERIES = ["shift(0.2)", "feature_dropout(0.3)", "scaling(0.8,1.2) >> shift(0.1)"]


@pytest.mark.parametrize("spec", LINEAR + OF_SERIES)
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), ([0.1, 0.4], [0.7, 2.0])])
def test_augmented_features_are_the_average_over_transformed_images(spec, mean, std):
    """Frequency by frequency and view by view: transform, normalise, take cos and sin."""
    shape = (2, 16) if spec in OF_SERIES else (2, 8, 8)
    augmentation, x, d, seed = parse(spec), images(shape=shape), 12, 3
    phi = FourierFeatures(d, gamma=0.2, mean=mean, std=std, seed=seed)
    psi = AugmentedFourier(augmentation, phi, n_views=8, seed=seed).fit(x)
    assert psi.note == ""
    plain = FourierFeatures(d, gamma=0.2, seed=seed).fit(x)
    sides = (-1, *[1] * (len(shape) - 1))
    centre, unit = (torch.tensor(v, dtype=torch.float64).reshape(sides) for v in (mean, std))
    rule = augmentation.nodes(8)
    expected = torch.zeros(len(x), d, dtype=torch.float64)
    for k in range(d // 2):
        if rule is None:  # maps of this frequency's own
            params = augmentation.draw(8, Rng(seed, torch.tensor([k])))
            weights = torch.full((8,), 1 / 8, dtype=torch.float64)
        else:
            params, weights = rule
        views = augmentation.apply(x.unsqueeze(0), params)
        for weight, view in zip(weights, views, strict=True):
            phase = ((view - centre) / unit).flatten(1) @ plain.frequencies[k]
            expected[:, k] += weight * phase.cos() * math.sqrt(2 / d)
            expected[:, k + d // 2] += weight * phase.sin() * math.sqrt(2 / d)
    torch.testing.assert_close(psi(x), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("spec", [spec for spec in LINEAR if parse(spec).nodes(4) is not None])
@pytest.mark.parametrize("sparse_from", [0, 10**9], ids=["sparse", "dense"])
def test_frequencies_through_matrices_are_those_through_the_adjoint(spec, sparse_from, monkeypatch):
    """As many frequencies as values take matrices; the adjoint is a derivative of `apply`."""
    monkeypatch.setattr("augury.features.augmented._SPARSE", sparse_from)
    x = images(shape=(2, 8, 8))
    psi = AugmentedFourier(parse(spec), FourierFeatures(2 * 128, gamma=0.2), n_views=4).fit(x)
    omega = psi.phi.frequencies.view(-1, 2, 8, 8)
    expected = psi.augmentation.adjoint(omega, psi.augmentation.nodes(4).params).flatten(2)
    found = psi.nodes.clone()
    for pair in psi._pairs:
        if len(pair) == 2:
            found[list(pair)] = torch.stack(
                [psi.nodes[pair[0]] + psi.nodes[pair[1]], psi.nodes[pair[0]] - psi.nodes[pair[1]]]
            )
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("weights", "pairs"),
    [
        ([1.0], [(0,)]),
        ([0.5, 0.5], [(0, 1)]),
        ([0.2, 0.6, 0.2], [(0, 2), (1,)]),
        ([0.1, 0.4, 0.4, 0.1], [(0, 3), (1, 2)]),
        ([0.1, 0.4, 0.3, 0.2], [(0,), (3,), (1,), (2,)]),
    ],
)
def test_nodes_of_equal_weight_are_paired(weights, pairs):
    assert _pairs(torch.tensor(weights, dtype=torch.float64)) == pairs


@pytest.mark.parametrize("mean", [0.0, 0.4])
@pytest.mark.parametrize(("spec", "n"), [("rotation(15)", 4), ("rotation(15)", 5), ("flips", 4)])
def test_views_come_in_the_order_of_the_rule(spec, n, mean):
    x = images()
    phi = FourierFeatures(32, gamma=0.2, mean=mean)
    psi = AugmentedFourier(parse(spec), phi, n_views=n).fit(x)
    params, weights = psi.augmentation.nodes(n)
    expected = [psi.phi(view) for view in psi.augmentation.apply(x.unsqueeze(0), params)]
    torch.testing.assert_close(psi.views_of(x), torch.stack(expected), atol=1e-12, rtol=0)
    average = torch.einsum("n,nbd->bd", weights, torch.stack(expected))
    torch.testing.assert_close(psi(x), average, atol=1e-12, rtol=0)


def test_rounded_frequencies_are_kept_for_all_uses_until_others_are_drawn():
    x = images().float().requires_grad_()
    phi = FourierFeatures(32, gamma=0.2).fit(x.detach())
    phi.short = True
    with torch.inference_mode():
        phi(x)
    assert torch.autograd.grad(phi.phases(x).sum(), x)[0].abs().max() > 0
    other = FourierFeatures(32, gamma=2.0, seed=5).fit(x.detach())
    for change in (
        lambda: phi.draw((1, 8, 8), 2.0),
        lambda: phi.load_state_dict(other.state_dict()),
    ):
        change()
        expected = x.flatten(1).bfloat16() @ phi.frequencies.bfloat16().mT
        torch.testing.assert_close(phi.phases(x), expected, atol=0, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_types_are_transformed_too(dtype):
    x = images().to(dtype)
    psi = AugmentedFourier(parse("quarter_turns"), FourierFeatures(512, gamma=0.1)).fit(x)
    fine = AugmentedFourier(parse("quarter_turns"), FourierFeatures(512, gamma=0.1)).fit(x.float())
    torch.testing.assert_close(psi(x).float(), fine(x.float()), atol=0.01, rtol=0)


def test_a_group_average_is_invariant():
    x = images()
    psi = AugmentedFourier(parse("flips"), FourierFeatures(32, gamma=0.2)).fit(x)
    torch.testing.assert_close(psi(x), psi(x.flip(-1)), atol=1e-12, rtol=0)
    assert (psi.phi(x) - psi.phi(x.flip(-1))).abs().max() > 0.01


@pytest.mark.parametrize("spec", ["noise(0.1)", "brightness(0.3)", "rotation(15) >> noise(0.1)"])
def test_what_is_not_linear_is_transformed_with_a_note(spec):
    augmentation, x = parse(spec), images()
    psi = AugmentedFourier(augmentation, FourierFeatures(32, gamma=0.2), n_views=5, seed=4).fit(x)
    assert "not linear" in psi.note
    rule = augmentation.nodes(5)
    if rule is None:
        params = augmentation.draw(5, Rng(4, torch.zeros(1, dtype=torch.int64)))
        weights = torch.full((5,), 0.2, dtype=torch.float64)
    else:
        params, weights = rule
    views = augmentation.apply(x.unsqueeze(0), params)
    expected = sum(w * psi.phi(v) for w, v in zip(weights, views, strict=True))
    torch.testing.assert_close(psi(x), expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(psi(x[2:3]), psi(x)[2:3], atol=1e-12, rtol=0)  # a function of x


def test_structured_or_too_many_frequencies_are_not_transformed():
    x, rotation = images(), parse("rotation(15)")
    structured = AugmentedFourier(rotation, FourierFeatures(32, gamma=0.2, sampling="hadamard"))
    assert "structured" in structured.fit(x).note
    small = AugmentedFourier(rotation, FourierFeatures(32, gamma=0.2), memory=1e-9).fit(x)
    large = AugmentedFourier(rotation, FourierFeatures(32, gamma=0.2)).fit(x)
    assert "GiB" in small.note
    torch.testing.assert_close(small(x), large(x), atol=1e-12, rtol=0)


def test_blocks_of_examples_and_of_frequencies_change_nothing(monkeypatch):
    x = images(b=7)
    whole = AugmentedFourier(parse("elastic(0.1)"), FourierFeatures(32, gamma=0.2)).fit(x)
    monkeypatch.setattr("augury.features.augmented._CHUNK", 1000)
    monkeypatch.setattr("augury.features.augmented._BLOCK", 32)
    parts = AugmentedFourier(parse("elastic(0.1)"), FourierFeatures(32, gamma=0.2)).fit(x)
    torch.testing.assert_close(parts(x), whole(x), atol=1e-12, rtol=0)


def test_quadrature_needs_fewer_versions_than_chance():
    x, rotation = digits(8), parse("rotation(15)")
    drawn = parse("rotation(15) ** 1")  # the same law, without a rule
    assert drawn.nodes(4) is None

    def features(n, augmentation=rotation, seed=0):
        phi = FourierFeatures(64, gamma=0.1)
        return AugmentedFourier(augmentation, phi, n_views=n, seed=seed).fit(x)(x)

    truth = features(128)

    def chance(n):
        found = [features(n, drawn, seed) - truth for seed in range(8)]
        return float(torch.stack(found).norm()) / math.sqrt(8)

    def rule(n):
        return float((features(n) - truth).norm())

    assert rule(4) < 0.25 * chance(16)
    assert rule(4) > 8 * rule(16)  # interpolated images have kinks, or it would be far more
    assert chance(4) == pytest.approx(2 * chance(16), rel=0.25)


@pytest.mark.parametrize(
    "spec",
    [
        "rotation(15)",
        "translation(0.2)",
        "flips",
        "elastic(0.1)",
        "scaling(0.8,1.5)",
        "contrast(0.5)",
    ],
)
def test_leading_rows_hold_the_variance_of_the_views(spec):
    x = images(b=9)
    phi = FourierFeatures(64, gamma=0.2)
    psi = AugmentedFourier(parse(spec), phi, n_views=6, shared=True).fit(x)
    mean, rows = psi.leading(x, torch.arange(9), 4)
    torch.testing.assert_close(mean, psi(x))
    assert rows.shape == (3, 64)
    views, weights = psi.views_of(x)[:, ::4], psi.weights
    deviations = views - torch.einsum("n,nbd->bd", weights, views)
    spread = torch.einsum("n,nbd->b", weights, deviations.square())
    torch.testing.assert_close(rows.square().sum(1), spread)
    for i in range(3):  # and lie in the span of the deviations
        basis = torch.linalg.svd(deviations[:, i].mT, full_matrices=False)[0]
        basis = basis[:, : len(weights) - 1]
        torch.testing.assert_close(basis @ (basis.mT @ rows[i]), rows[i], atol=1e-9, rtol=0)


def test_the_leading_row_of_a_rotation_is_most_of_its_covariance():
    x = digits(20)
    psi = AugmentedFourier(parse("rotation(10)"), FourierFeatures(256, gamma=0.1)).fit(x)
    _, rows = psi.leading(x, torch.arange(20), 1)
    views = psi.views_of(x)
    deviations = (views - psi(x)) * psi.weights.sqrt().view(-1, 1, 1)
    top = torch.linalg.svd(deviations.transpose(0, 1), full_matrices=False)[2][:, 0]
    cosine = (top * rows / rows.norm(dim=1, keepdim=True)).sum(1).abs()
    assert float(cosine.min()) > 0.95


def test_bad_use_is_refused_in_one_line():
    x = images()
    refused("even", FourierFeatures, 7)
    refused("gamma|median", FourierFeatures, 8, gamma=-1.0)
    refused("gamma|best", FourierFeatures, 8, gamma="best")
    refused("kernel|cubic", FourierFeatures, 8, kernel="cubic")
    refused("nu|0.5", FourierFeatures, 8, kernel="matern", nu=3.0)
    refused("sampling|sobol", FourierFeatures, 8, sampling="sobol")
    refused("Euclidean|iid", FourierFeatures, 8, kernel="laplacian", sampling="orthogonal")
    refused("std", FourierFeatures, 8, std=0.0)
    refused("each of the 1 channels", FourierFeatures(8, gamma=1.0, mean=[0.1, 0.2]).fit, x)
    refused("call fit", FourierFeatures(8), x)
    rotation = parse("rotation(15)")
    refused("n_views", AugmentedFourier, rotation, FourierFeatures(8), n_views=0)
    refused("call fit", AugmentedFourier(rotation, FourierFeatures(8)), x)
    flat = AugmentedFourier(rotation, FourierFeatures(8, gamma=1.0))
    refused("works on image data", flat.fit, x.flatten(1))
    own = AugmentedFourier(parse("elastic(0.1)"), FourierFeatures(8, gamma=1.0)).fit(x)
    refused("shared=True", own.views_of, x)


@pytest.mark.parametrize("spec", ["rotation(15)", "rotation(180)", "shear(20)", "translation(0.2)"])
def test_one_view_is_drawn_and_not_the_mean_parameter(spec):
    """The only node of a rule of one would be no augmentation, or half a turn for all."""
    augmentation, x = parse(spec), images(b=5)
    assert augmentation.nodes(1) is None
    views, weights = augmentation.weighted_views(x, 1, Rng(0, torch.arange(5)))
    assert weights.tolist() == [1.0]
    assert float((views[0] - x).abs().amax((1, 2, 3)).min()) > 1e-3
    phi = FourierFeatures(64, gamma=0.2)
    psi = AugmentedFourier(augmentation, phi, n_views=1).fit(x)
    assert float((psi(x) - phi(x)).norm()) > 0.1


@pytest.mark.parametrize(("spec", "n"), [("translation(0.2)", 8), ("resized_crop(0.5)", 6)])
def test_points_that_fill_the_cube_come_nearer_to_the_averaged_kernel_than_draws(spec, n):
    """Draws that serve both ends of a kernel are off by (K_same − K̄)/n, whatever d is."""
    augmentation, x = parse(spec), digits(12)
    gaussian = ShiftInvariantKernel("gaussian")

    def diagonal(rule):
        views = augmentation.apply(x.unsqueeze(0), rule.params).flatten(2).movedim(0, 1)
        each = torch.stack([gaussian.matrix(v, v, 0.3) for v in views])
        return torch.einsum("n,bnm,m->b", rule.weights, each, rule.weights)

    true = diagonal(augmentation.nodes(400))
    off = (diagonal(augmentation.nodes(n)) - true).abs().mean()
    assert float(off) < 0.4 * float(((1 - true) / n).mean())


def test_another_seed_draws_other_maps_for_the_same_frequencies():
    x = images(b=3)
    made = [
        AugmentedFourier(parse("elastic(0.1)"), FourierFeatures(32, gamma=0.2), seed=k).fit(x)(x)
        for k in (0, 0, 1)
    ]
    assert torch.equal(made[0], made[1])
    assert float((made[0] - made[2]).abs().max()) > 1e-3
