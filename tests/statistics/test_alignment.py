from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import flips, rotation, translation
from augury.data.dataset import Dataset
from augury.features import Flatten, FourierFeatures
from augury.features.orbit import Orbit
from augury.features.target_alignment import kernel_alignment
from augury.forecasting.scores import AlignmentScore, CentredAlignmentScore, Setting
from augury.statistics import Alignment, group_of


def problem(seed, examples=12, classes=3, views=3, d=5):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(views, examples, d, generator=generator, dtype=torch.float64)
    weights = torch.rand(views, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (examples,), generator=generator)
    labels[:classes] = torch.arange(classes)
    targets = torch.nn.functional.one_hot(labels, classes).double()
    return Orbit(features, weights / weights.sum()), labels, targets


def take(orbit, rows):
    return Orbit(orbit.features[:, rows], orbit.weights)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.booleans(), st.integers(2, 5))
def test_alignment_equals_the_slow_reference(seed, centred, classes):
    orbit, labels, targets = problem(seed, classes=classes)
    group = group_of(torch.arange(12), 4)
    # centred labels of one class alone are zero, and so is what they are divided by
    assume(all(len(labels[group != g].unique()) > 1 for g in range(4)))
    statistic = Alignment(centred=centred, groups=4)
    statistic.update(orbit, targets, torch.arange(12))
    kernel = reference.averaged_kernel(orbit.features.numpy(), orbit.weights.numpy())
    target = reference.label_kernel(labels.numpy())
    if centred:
        kernel, target = reference.centre(kernel), reference.centre(target)
    result = statistic.result()
    assert result.value == pytest.approx(reference.alignment(kernel, target), abs=1e-10)

    for c in range(classes):
        own = targets[:, c].numpy()
        own = np.outer(own, own)
        expected = reference.alignment(kernel, reference.centre(own) if centred else own)
        assert float(result.per_class[c]) == pytest.approx(expected, abs=1e-10)

    for g in range(4):
        rows = (group != g).numpy()
        inside = reference.averaged_kernel(orbit.features[:, rows].numpy(), orbit.weights.numpy())
        wanted = reference.label_kernel(labels[rows].numpy())
        if centred:
            inside, wanted = reference.centre(inside), reference.centre(wanted)
        expected = reference.alignment(inside, wanted)
        assert float(result.replicates[g]) == pytest.approx(expected, abs=1e-10)


def test_real_targets_use_their_outer_product():
    orbit, _, _ = problem(1)
    y = torch.randn(12, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    statistic = Alignment(groups=3)
    statistic.update(orbit, y, torch.arange(12))
    kernel = reference.averaged_kernel(orbit.features.numpy(), orbit.weights.numpy())
    expected = reference.alignment(kernel, np.outer(y, y))
    assert statistic.result().value == pytest.approx(expected, abs=1e-10)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 11), st.booleans())
def test_any_split_and_order_gives_the_same(seed, cut, centred):
    orbit, _, targets = problem(seed)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(seed))
    whole = Alignment(centred=centred, groups=5)
    whole.update(orbit, targets, torch.arange(12))
    parts = []
    for rows in (order[:cut], order[cut:]):
        part = Alignment(centred=centred, groups=5)
        for row in rows.split(2):
            part.update(take(orbit, row), targets[row], row)
        parts.append(part)
    merged = (parts[0] + parts[1] + Alignment(centred=centred, groups=5)).result()
    assert merged.value == pytest.approx(whole.result().value, abs=1e-12)
    torch.testing.assert_close(merged.replicates, whole.result().replicates, atol=1e-12, rtol=0)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.floats(0.01, 100), st.booleans())
def test_alignment_is_scale_free_and_between_nought_and_one(seed, scale, centred):
    orbit, _, targets = problem(seed)
    values = []
    for factor in (1.0, scale):
        statistic = Alignment(centred=centred)
        statistic.update(Orbit(orbit.features * factor, orbit.weights), targets, torch.arange(12))
        values.append(statistic.result().value)
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert 0 <= values[0] <= 1


def test_perfect_features_align_perfectly():
    _, _, targets = problem(0)
    statistic = Alignment()
    statistic.update(Orbit(targets.unsqueeze(0), torch.ones(1).double()), targets, torch.arange(12))
    assert statistic.result().value == pytest.approx(1, abs=1e-12)


def images(examples=60):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(examples) % 3
    x = (
        torch.rand(examples, 1, 8, 8, generator=generator, dtype=torch.float64)
        + y[:, None, None, None] / 3
    )
    return Dataset(x / 2, y, ("a", "b", "c"))


@pytest.mark.parametrize("score", [AlignmentScore, CentredAlignmentScore])
@pytest.mark.parametrize("augmentation", [rotation(15), translation(0.2), flips()], ids=repr)
@pytest.mark.usefixtures("one_thread")  # which also sets the number of threads back
def test_score_does_not_depend_on_batch_size_or_threads(score, augmentation):
    data = images(24)
    phi = FourierFeatures(32, gamma=0.1).fit(data.x)
    found = []
    for batch, threads in ((1, 1), (7, 2), (256, 1), (256, 2)):
        torch.set_num_threads(threads)
        setting = Setting(data, phi, 5, 3, torch.device("cpu"), torch.float64, batch)
        found.append(score(setting).evaluate(augmentation))
    for other in found[1:]:
        assert other.value == pytest.approx(found[0].value, abs=1e-10)
        torch.testing.assert_close(other.replicates, found[0].replicates, atol=1e-10, rtol=0)


def test_the_mean_over_mini_batches_is_another_number():
    """What the paper's code computes depends on the batch size; sums do not."""
    data = images()
    phi = FourierFeatures(32, gamma=0.1).fit(data.x)
    features, targets = phi(data.x), data.targets()
    exact = float(kernel_alignment(features @ features.T, targets @ targets.T))
    parts = [
        kernel_alignment(f @ f.T, t @ t.T)
        for f, t in zip(features.split(6), targets.split(6), strict=True)
    ]
    assert abs(float(torch.stack(parts).mean()) - exact) > 1e-3
    setting = Setting(data, phi, 1, 0, torch.device("cpu"), torch.float64, 6)
    from augury.augmentations import identity

    assert AlignmentScore(setting).evaluate(identity()).value == pytest.approx(exact, abs=1e-10)


def test_orbit_mean_deviations_and_spread():
    orbit, _, _ = problem(4)
    w, f = orbit.weights.numpy(), orbit.features.numpy()
    mean = sum(w[k] * f[k] for k in range(3))
    np.testing.assert_allclose(orbit.mean, mean, atol=1e-12)
    np.testing.assert_allclose(np.einsum("n,nbd->bd", w, orbit.deviations.numpy()), 0, atol=1e-12)
    spread = [sum(w[k] * np.sum((f[k, i] - mean[i]) ** 2) for k in range(3)) for i in range(12)]
    np.testing.assert_allclose(orbit.spread, spread, atol=1e-12)


def test_only_like_is_added_to_like():
    with pytest.raises(AuguryError, match="same settings"):
        Alignment(centred=True) + Alignment()
    with pytest.raises(AuguryError, match="no example"):
        Alignment().result()
    with pytest.raises(AuguryError, match="at least 2 groups"):
        Alignment(groups=1)


class TestFourierFeatures:
    def test_inner_products_converge_to_the_gaussian_kernel(self):
        x = torch.randn(20, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        exact = (-0.2 * torch.cdist(x, x).square()).exp()
        errors = []
        for d in (256, 4096, 65536):
            phi = FourierFeatures(d, gamma=0.2).fit(x)(x)
            errors.append(float((phi @ phi.T - exact).abs().mean()))
        assert errors[1] < errors[0] / 2.5
        assert errors[2] < errors[1] / 2.5

    def test_gamma_follows_alignment(self):
        data = images(120)
        phi = FourierFeatures(16).fit(data.x, data.targets())
        squared = torch.cdist(data.x.flatten(1), data.x.flatten(1)).square().numpy()
        label = reference.label_kernel(data.y.numpy())

        def score(gamma):
            return reference.alignment(np.exp(-gamma * squared), label)

        assert score(phi.gamma_) >= max(score(phi.gamma_ * 2), score(phi.gamma_ / 2))

    def test_bad_settings_are_said(self):
        for d in (0, 3):
            with pytest.raises(AuguryError, match="must be even and positive"):
                FourierFeatures(d)
        with pytest.raises(AuguryError, match="gamma must be positive"):
            FourierFeatures(4, gamma=-1.0)
        with pytest.raises(AuguryError, match="call fit first"):
            FourierFeatures(4)(torch.zeros(1, 2))


def test_flatten_is_the_linear_kernel():
    x = torch.rand(3, 2, 4, 4)
    torch.testing.assert_close(Flatten()(x), x.reshape(3, 32))


def test_orbit_of_uses_every_node():
    x = torch.rand(3, 1, 4, 4, dtype=torch.float64)
    orbit = Orbit.of(Flatten(), flips(), x, 8, Rng(0, torch.arange(3)))
    assert orbit.features.shape == (4, 3, 16)
    mean = (x + x.flip(-1) + x.flip(-2) + x.flip(-1, -2)) / 4
    torch.testing.assert_close(orbit.mean, mean.flatten(1))


@pytest.mark.parametrize("centred", [False, True])
def test_chance_is_the_mean_over_all_permutations_of_the_labels(centred):
    orbit, labels, _ = problem(3, examples=5, classes=2)
    kernel = reference.averaged_kernel(orbit.features.numpy(), orbit.weights.numpy())
    found = []
    for order in itertools.permutations(range(5)):
        target = reference.label_kernel(labels.numpy()[list(order)])
        pair = (kernel, target)
        if centred:
            pair = (reference.centre(kernel), reference.centre(target))
        found.append(reference.alignment(*pair))
    statistic = Alignment(centred=centred, groups=2)
    statistic.update(orbit, torch.nn.functional.one_hot(labels, 2).double(), torch.arange(5))
    assert statistic.result().chance == pytest.approx(float(np.mean(found)), abs=1e-10)


def test_the_chance_of_a_centred_alignment_does_not_depend_on_the_mean_of_the_target():
    orbit, _, _ = problem(3, examples=6)
    y = torch.tensor([1.0, -1.0, 2.0, -2.0, 0.5, -0.5], dtype=torch.float64).unsqueeze(1)
    found = []
    for targets in (y, y + 3):
        statistic = Alignment(centred=True, groups=2)
        statistic.update(orbit, targets, torch.arange(6))
        found.append(statistic.result())
    assert found[0].chance == pytest.approx(found[1].chance)
    assert found[0].value == pytest.approx(found[1].value)
