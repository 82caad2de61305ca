from __future__ import annotations

import math

import numpy as np
import pytest
import reference
import reference_ridge as slow
import torch
from devices import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused
from sklearn.datasets import load_digits

import augury
from augury.augmentations import flips, identity, rotation, translation
from augury.data.dataset import Dataset
from augury.features import FeatureMap, Flatten, FourierFeatures, GradientFeatures, PatchFeatures
from augury.features.orbit import Orbit
from augury.forecasting.rank import FEATURES
from augury.forecasting.scores import SCORES, KernelRidgeScore, RidgeScore, Setting
from augury.forecasting.scores import kernel_ridge as kernel_ridge_module
from augury.forecasting.scores.kernel_ridge import by_features, by_kernel
from augury.statistics import group_of
from augury.statistics.heldout import HeldOutRisk
from augury.statistics.ridge import RidgeRisk

CPU = torch.device("cpu")


pytestmark = pytest.mark.usefixtures("one_thread")


def problem(seed, examples=24, classes=3, views=3, d=5):
    generator = torch.Generator().manual_seed(seed)
    clean = torch.randn(examples, d, generator=generator, dtype=torch.float64)
    noise = torch.randn(views, examples, d, generator=generator, dtype=torch.float64)
    weights = torch.rand(views, generator=generator, dtype=torch.float64) + 0.1
    labels = torch.randint(classes, (examples,), generator=generator)
    clean[:, 0] += labels
    targets = torch.nn.functional.one_hot(labels, classes).double()
    return Orbit(clean + 0.3 * noise, weights / weights.sum(), clean), labels, targets


def ridge_of(orbit, targets, *, classes=True, groups=6, folds=3, **options):
    return RidgeRisk(HeldOutRisk(orbit.origin, targets, classes, groups), folds=folds, **options)


def fitted(orbit, targets, **options):
    statistic = ridge_of(orbit, targets, **options)
    statistic.update(orbit, targets, torch.arange(len(targets)))
    return statistic


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 30), st.floats(1e-3, 10))
def test_ridge_equals_least_squares_on_all_versions_fold_by_fold(seed, folds, d, ratio):
    orbit, _, targets = problem(seed, d=d)
    statistic = fitted(orbit, targets, folds=folds)
    fold = group_of(torch.arange(24), folds).numpy()
    arrays = [t.numpy() for t in (orbit.features, orbit.weights, targets, orbit.origin)]
    expected = slow.explicit_ridge(*arrays, fold, ratio)
    np.testing.assert_allclose(statistic.predict(ratio), expected, atol=1e-8)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6))
def test_the_estimate_is_the_least_calibrated_log_loss(seed):
    orbit, labels, targets = problem(seed)
    statistic = fitted(orbit, targets, ratios=(0.1, 1.0))
    tried = [
        slow.calibrated_log_losses(statistic.predict(ratio).numpy(), labels.tolist())
        for ratio in (0.1, 1.0)
    ]
    best = 0.1 if tried[0].mean() < tried[1].mean() else 1.0
    for ratio in (best / math.sqrt(10), best * math.sqrt(10)):
        predictions = statistic.predict(ratio).numpy()
        tried.append(slow.calibrated_log_losses(predictions, labels.tolist()))
    losses = min(tried, key=lambda loss: loss.mean())
    found = statistic.result()
    assert found.value == pytest.approx(-losses.mean(), abs=1e-8)
    group = group_of(torch.arange(24), 6).numpy()
    without = [-losses[group != g].mean() for g in range(6)]
    np.testing.assert_allclose(found.replicates, without, atol=1e-5)
    for c in range(3):
        own = losses[labels.numpy() == c]
        assert float(found.per_class[c]) == pytest.approx(-own.mean() if len(own) else 0, abs=1e-5)


def test_a_real_target_is_judged_by_the_share_of_its_variance():
    orbit, _, _ = problem(3)
    y = orbit.origin[:, :1] + 0.1 * orbit.origin[:, 1:2]
    statistic = fitted(orbit, y, classes=False, ratios=(0.01,))
    errors = {
        ratio: ((statistic.predict(ratio) - y) ** 2).mean().item() / y.var(correction=0).item()
        for ratio in (0.01 / math.sqrt(10), 0.01, 0.01 * math.sqrt(10))
    }
    found = statistic.result()
    assert found.value == pytest.approx(-min(errors.values()), rel=1e-12)
    assert found.per_class.shape == (0,)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 23))
def test_any_split_and_order_gives_the_same(seed, cut):
    orbit, _, targets = problem(seed)
    order = torch.randperm(24, generator=torch.Generator().manual_seed(seed))
    parts = []
    for rows in (order[:cut], order[cut:]):
        part = ridge_of(orbit, targets)
        for row in rows.split(5):
            part.update(Orbit(orbit.features[:, row], orbit.weights), targets[row], row)
        parts.append(part)
    merged = (parts[0] + parts[1] + ridge_of(orbit, targets)).result()
    whole = fitted(orbit, targets).result()
    assert merged.value == pytest.approx(whole.value, abs=1e-10)
    torch.testing.assert_close(merged.replicates, whole.replicates, atol=1e-10, rtol=0)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_the_size_of_features_does_not_matter(seed, scale):
    orbit, _, targets = problem(seed)
    larger = Orbit(orbit.features * scale, orbit.weights, orbit.origin * scale)
    assert fitted(larger, targets).result().value == pytest.approx(
        fitted(orbit, targets).result().value, rel=1e-9
    )


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(2, 5), st.floats(1e-3, 1))
def test_kernel_ridge_equals_the_explicit_kernel_from_either_side(seed, d, folds, ratio):
    orbit, labels, targets = problem(seed, d=d)
    kernel = reference.averaged_kernel(orbit.features.numpy(), orbit.weights.numpy())
    fold = group_of(torch.arange(24), folds).numpy()
    held_out = HeldOutRisk(orbit.mean, targets, True)
    losses = []
    for one in (ratio, ratio / math.sqrt(10), ratio * math.sqrt(10)):
        predictions = slow.explicit_kernel_ridge(kernel, targets.numpy(), fold, one)
        losses.append(slow.calibrated_log_losses(predictions, labels.tolist()).mean())
    for solve in (by_kernel, by_features):
        assert solve(held_out, folds, (ratio,)).value == pytest.approx(-min(losses), abs=1e-8)


def images(examples=60):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(examples) % 3
    x = torch.rand(examples, 1, 8, 8, generator=generator, dtype=torch.float64)
    x[:, 0, 2:6, 2:6] += (y / 3)[:, None, None]
    return Dataset(x / 2, y, ("a", "b", "c"))


def feature_maps():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = torch.nn.Sequential(
            torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(108, 2)
        )
    return {
        "fourier": FourierFeatures(32, gamma=0.1),
        "patches": PatchFeatures(6),
        "patches2": PatchFeatures(6, layers=2),
        "gradient": GradientFeatures(network, 64),
    }


@pytest.mark.parametrize("score", [RidgeScore, KernelRidgeScore])
@pytest.mark.parametrize("features", feature_maps())
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_scores_do_not_depend_on_batch_size(score, features, dtype, tolerance):
    data = images()
    phi = feature_maps()[features].fit(data.x.to(dtype))
    for augmentation in (translation(0.2), flips()):
        values = []
        for batch in (1, 7, 256):
            setting = Setting(data, phi, 3, 3, CPU, dtype, batch)
            values.append(score(setting).evaluate(augmentation))
        for other in values[1:]:
            assert other.value == pytest.approx(values[0].value, abs=tolerance)
            torch.testing.assert_close(
                other.replicates, values[0].replicates, atol=tolerance, rtol=0
            )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("score", [RidgeScore, KernelRidgeScore])
@pytest.mark.parametrize("features", feature_maps())
def test_scores_do_not_depend_on_the_device(score, features, device):
    data, found = images(), []
    for where in (CPU, torch.device(device)):
        phi = feature_maps()[features].to(where).fit(data.x.float().to(where))
        found.append(score(Setting(data, phi, 4, 3, where)).evaluate(rotation(15)))
    assert found[1].value == pytest.approx(found[0].value, abs=1e-4)
    torch.testing.assert_close(found[1].replicates, found[0].replicates, atol=1e-4, rtol=0)


@pytest.mark.parametrize("score", [RidgeScore, KernelRidgeScore])
def test_no_label_leaks_from_what_is_held_out(score):
    """Labels that follow nothing cannot be foretold, however many features there are."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 600, generator=generator, dtype=torch.float64)
    data = Dataset(x, torch.arange(300) % 3, ("a", "b", "c"))
    found = score(Setting(data, Flatten(), 1, 0, CPU, torch.float64)).evaluate(identity())
    assert found.value == pytest.approx(-math.log(3), abs=0.02)


@pytest.mark.parametrize("score", ["ridge", "kernel-ridge"])
def test_digits_lose_more_from_flips_than_from_shifts(score):
    digits = load_digits()
    found = augury.rank(
        digits.images, digits.target, ["translation(0.1)", "vertical_flip"],
        score=score, feature_map=PatchFeatures(16), n_views=4, max_examples=600,
    )  # fmt: skip
    flip, shift = found["vertical_flip"], found["translation(0.1)"]
    assert flip.gain < min(0, shift.gain)
    assert flip.low < flip.gain < flip.high
    assert list(flip.per_class) == [str(c) for c in range(10)]


def test_the_feature_maps_have_their_names():
    data = images()
    for name, kind in (("patches", PatchFeatures), ("patches2", PatchFeatures),
                       ("gradient", GradientFeatures)):  # fmt: skip
        phi = FEATURES[name](3)
        assert isinstance(phi, kind)
        assert phi.seed == 3
    found = augury.rank(data, augmentations=["flips"], score="kernel-ridge", feature_map="patches2")
    assert found.features == "100 random whitened patches, pooled 3×3, two layers"


@pytest.mark.parametrize("score", [RidgeScore, KernelRidgeScore])
def test_ticks_are_as_many_as_said(score):
    calls = []
    setting = Setting(images(), Flatten(), 2, 0, CPU, batch_size=16)
    scorer = score(setting, lambda *call: calls.append(call))
    scorer.judge_all([flips()])
    assert len(calls) == scorer.ticks(2)
    assert calls[0] == (1, scorer.ticks(2), "identity")
    assert calls[-1] == (scorer.ticks(2), scorer.ticks(2), "flips")


def test_kernel_ridge_subsamples_and_says_so(monkeypatch):
    monkeypatch.setattr(kernel_ridge_module, "_MOST", 30)
    scorer = KernelRidgeScore(Setting(images(), Flatten(), 2, 0, CPU))
    assert scorer.describe() == "pixels as they are; 30 of 60 examples"
    assert scorer.evaluate(flips()).replicates.shape == (20,)
    assert KernelRidgeScore(Setting(images(30), Flatten(), 2, 0, CPU)).describe() == (
        "pixels as they are"
    )


@pytest.mark.parametrize("score", [RidgeScore, KernelRidgeScore])
@pytest.mark.parametrize("side", [4, 8])
def test_blank_examples_are_judged_by_the_bias_alone(score, side):
    data = Dataset(torch.zeros(60, 1, side, side), torch.arange(60) % 3, ("a", "b", "c"))
    found = score(Setting(data, Flatten(), 2, 0, CPU)).evaluate(flips())
    assert found.value == pytest.approx(-math.log(3), abs=0.05)


class Broken(FeatureMap):
    def forward(self, x):
        return x.flatten(1) / 0


@pytest.mark.parametrize("score", [RidgeScore, KernelRidgeScore])
def test_what_cannot_be_judged_is_said(score):
    scorer = score(Setting(images(), Broken(), 2, 0, CPU))
    refused(
        "features of these examples are not finite|another feature map", scorer.evaluate, flips()
    )
    scorer = score(Setting(images(1), Flatten(), 2, 0, CPU))
    refused("1 example fell into one fold|more examples", scorer.evaluate, flips())


def test_bad_settings_are_said():
    orbit, _, targets = problem(0)
    refused("at least 2 folds, not 1", ridge_of, orbit, targets, folds=1)
    refused("no example was added", ridge_of(orbit, targets).result)
    wide = Orbit(torch.zeros(1, 24, 8193), torch.ones(1), torch.zeros(24, 8193))
    refused("at most 8,192 features|8,193|kernel-ridge", fitted, wide, targets)
    other, _, _ = problem(1)
    with pytest.raises(augury.AuguryError, match="same settings"):
        ridge_of(orbit, targets) + ridge_of(other, targets)


def test_both_scores_have_their_names():
    assert SCORES["ridge"] is RidgeScore
    assert SCORES["kernel-ridge"] is KernelRidgeScore


def test_chance_is_the_best_that_one_prediction_for_all_can_do():
    y = torch.tensor([[1, 0], [1, 0], [1, 0], [0, 1]], dtype=torch.float64)
    x = torch.zeros(4, 1, dtype=torch.float64)
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert HeldOutRisk(x, y, True).estimate(torch.ones(4)).chance == pytest.approx(-entropy)
    real = torch.tensor([[1.0], [2.0], [3.0], [6.0]], dtype=torch.float64)
    assert HeldOutRisk(x, real, False).estimate(torch.ones(4)).chance == -1.0
    mean = real.mean(0).expand(4, 1)
    assert float(HeldOutRisk(x, real, False).losses(mean).mean()) == pytest.approx(1.0)
    same = HeldOutRisk(x, torch.ones(4, 1), False)
    assert same.losses(torch.zeros(4, 1)).tolist() == [1.0] * 4  # nothing to explain


def test_replicates_of_classes_leave_out_groups():
    generator = torch.Generator().manual_seed(0)
    loss = torch.rand(30, generator=generator, dtype=torch.float64)
    y = torch.eye(3, dtype=torch.float64)[torch.arange(30) % 3]
    found = HeldOutRisk(torch.zeros(30, 1), y, True, groups=5).estimate(loss)
    group = group_of(torch.arange(30), 5)
    for c in range(3):
        own = y[:, c] == 1
        assert float(found.per_class[c]) == pytest.approx(-float(loss[own].mean()))
        for g in range(5):
            rest = loss[own & (group != g)].mean()
            assert float(found.class_replicates[g, c]) == pytest.approx(-float(rest))
