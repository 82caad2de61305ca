"""What augmentation does for the estimators, and what their parameters do."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from kernel_models import IMAGE, fitted
from refusal import refused
from sklearn.base import clone

from augury._base.rng import Rng
from augury.augmentations import parse
from augury.kernel import (
    AugmentedFourierFeatures,
    AugmentedKernelClassifier,
    AugmentedKernelRegressor,
)
from augury.kernel.solvers import solve_ridge
from augury.kernel.solvers.gram import accumulate


def rotated(X, degrees=25.0):
    x = torch.from_numpy(X).reshape(-1, *IMAGE)
    turned = parse(f"rotation({degrees})").views(x, 1, Rng(5, torch.arange(len(x))))[0]
    return turned.flatten(1).numpy()


@pytest.mark.parametrize("objective", ["first-order", "tangent", "second-order", "exact"])
def test_augmentation_helps_on_rotated_digits(digits, objective):
    without = fitted(digits, "identity").score(rotated(digits[2]), digits[3])
    found = fitted(digits, objective=objective).score(rotated(digits[2]), digits[3])
    assert found > without + 0.03


def test_second_order_is_exact_for_the_quadratic_loss(digits):
    outputs = [
        fitted(digits, objective=name, precision="float64", ridge=1e-4).decision_function(digits[2])
        for name in ("second-order", "exact", "first-order")
    ]
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-9)
    assert np.abs(outputs[0] - outputs[2]).max() > 1e-3


def test_new_examples_see_whole_versions_where_training_did(digits):
    """Maps of each frequency's own are for averaged features, which no view has."""
    drawn = "elastic(0.05)"  # has no rule
    assert not fitted(digits, drawn)._psi.shared
    assert fitted(digits, drawn, objective="exact")._psi.shared


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("objective", ["first-order", "tangent", "exact"])
def test_a_gpu_finds_what_the_cpu_finds(digits, objective, monkeypatch):
    monkeypatch.setattr("augury.kernel.solvers.ridge._SMALL", 1)  # so that each takes its own way
    options = {"n_components": 1024, "ridge": 1e-4, "gamma": 0.1, "objective": objective}
    cpu, gpu = (fitted(digits, device=device, **options) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(
        gpu.decision_function(digits[2]), cpu.decision_function(digits[2]), atol=5e-3
    )
    chosen = fitted(digits, device="cuda", **(options | {"ridge": "gcv"}))
    assert chosen.solver_ == "cholesky"
    other = fitted(digits, device="cpu", **(options | {"ridge": "gcv"}))
    assert 0.2 < chosen.ridge_ / other.ridge_ < 5


@pytest.mark.parametrize("augmentation", ["rotation(25)", "noise(0.05)"])  # by nodes, by images
def test_short_products_change_little(digits, augmentation, tmp_path):
    """Rounded frequencies are frequencies as good as those that were drawn."""
    short, whole = (
        fitted(digits, augmentation, precision=precision, ridge=1e-4, gamma=0.1)
        for precision in ("bfloat16", "float32")
    )
    away = np.abs(short.decision_function(digits[2]) - whole.decision_function(digits[2]))
    assert 0 < away.mean() < 0.02
    assert abs(short.score(*digits[2:]) - whole.score(*digits[2:])) < 0.01
    short.save(tmp_path / "model")
    again = AugmentedKernelClassifier.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.predict(digits[2]), short.predict(digits[2]))


def test_sums_that_tensor_cores_made_too_rough_are_made_again(digits, monkeypatch):
    seen = []

    def rough_on_tensor_cores(*args, **options):
        sums, how = accumulate(*args, **options), torch.get_float32_matmul_precision()
        seen.append(how)
        if how != "high":
            return sums
        noise = torch.randn(sums.gram.shape, generator=torch.Generator().manual_seed(0))
        return dataclasses.replace(sums, gram=sums.gram + 1e-3 * (noise + noise.mT))

    monkeypatch.setattr("augury.kernel.solvers.ridge.accumulate", rough_on_tensor_cores)
    monkeypatch.setattr("augury.kernel.solvers.ridge._SMALL", 1)
    monkeypatch.setattr("augury.kernel.base.solve_ridge", partial(solve_ridge, method="cholesky"))
    options = {"ridge": 1e-4, "gamma": 0.1, "n_components": 256}
    found = fitted(digits, precision="tf32", **options)
    assert seen == ["high", "highest"]
    assert found.ridge_ == 1e-4
    whole = fitted(digits, precision="float32", **options)
    np.testing.assert_allclose(
        found.decision_function(digits[2]), whole.decision_function(digits[2]), atol=1e-4
    )


def test_images_of_one_channel_need_not_have_it(digits):
    x, y, new, _ = digits
    model = AugmentedKernelClassifier("rotation(25)", n_components=128, gamma=0.1, device="cpu")
    flat = clone(model).set_params(input_shape=IMAGE).fit(x, y)
    found = model.fit(x.reshape(-1, 8, 8), y)
    assert found.shape_ == IMAGE
    np.testing.assert_array_equal(found.predict(new.reshape(-1, 8, 8)), flat.predict(new))


@pytest.mark.parametrize("spec", ["brightness(0.2)", "contrast(0.3)", "noise(0.05)"])
def test_pixels_that_an_augmentation_cuts_are_warned_of(digits, spec):
    x, y = 16 * digits[0], digits[1]
    options = {"input_shape": IMAGE, "n_components": 64, "device": "cpu"}
    with pytest.warns(UserWarning, match=r"clips pixels to \[0, 1\], but .* from 0 to 16;"):
        AugmentedKernelClassifier(spec, **options).fit(x, y)
    AugmentedKernelClassifier("rotation(10)", **options).fit(x, y)  # cuts nothing
    with pytest.warns(UserWarning, match="clips pixels"):
        AugmentedFourierFeatures(spec, input_shape=IMAGE, n_components=64).fit(x)


def test_first_order_is_ridge_regression_on_the_transformers_features(digits):
    model = fitted(digits, precision="float64", ridge=1e-4, gamma=0.2)
    features = AugmentedFourierFeatures(
        "rotation(25)", input_shape=IMAGE, n_components=512, gamma=0.2
    )
    psi = features.fit(digits[0].astype(np.float64)).transform(digits[0].astype(np.float64))
    one_hot = np.eye(10)[digits[1]]
    gram = psi.T @ psi / 600 + 1e-4 * np.eye(512)
    weights = np.linalg.solve(gram, psi.T @ (one_hot - one_hot.mean(0)) / 600)
    expected = features.transform(digits[2].astype(np.float64)) @ weights + one_hot.mean(0)
    np.testing.assert_allclose(model.decision_function(digits[2]), expected, atol=1e-6)


@pytest.mark.parametrize(("classes", "curvature"), [(2, 1 / 4), (10, 1 / 2)])
def test_the_ridge_of_a_smooth_loss_is_rescaled_by_its_curvature(digits, classes, curvature):
    """λ was chosen for the quadratic loss, whose curvature is 2; a number is taken as it is."""
    data = digits[0], digits[1] % classes
    options = {"n_components": 64, "gamma": 0.1}
    chosen = fitted(data, **options).ridge_
    assert fitted(data, loss="logistic", **options).ridge_ == chosen * curvature / 2
    given = fitted(data, loss="logistic", ridge=0.01, **options)
    assert given.ridge_ == 0.01


@pytest.mark.parametrize("augmentation", ["identity", "elastic(0.05)"])
@pytest.mark.parametrize("objective", ["first-order", "exact"])
def test_another_seed_draws_other_frequencies_and_maps(digits, augmentation, objective):
    options = {"n_components": 32, "gamma": 0.1, "ridge": 0.01, "objective": objective}
    models = [fitted(digits, augmentation, random_state=k, **options) for k in (0, 0, 1)]
    scores = [model.decision_function(digits[2][:5]) for model in models]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert np.abs(scores[0] - scores[2]).max() > 1e-3


def test_a_random_state_may_be_left_open(digits):
    options = {"n_components": 16, "gamma": 0.1, "ridge": 0.1}
    one, two = (fitted(digits, random_state=None, **options).seed_ for _ in range(2))
    assert one != two
    made = [
        fitted(digits, random_state=np.random.RandomState(3), **options).seed_ for _ in range(2)
    ]
    assert made[0] == made[1]


@pytest.mark.parametrize("loss", ["quadratic", "logistic"])
@pytest.mark.parametrize("classes", [2, 10])
def test_probabilities_agree_with_predictions(digits, loss, classes):
    X, y, X_new, _ = digits
    model = fitted((X, y % classes), n_components=256, loss=loss)
    chance = model.predict_proba(X_new)
    assert chance.shape == (len(X_new), classes)
    np.testing.assert_allclose(chance.sum(1), 1, atol=1e-6)
    assert (chance >= 0).all()
    np.testing.assert_array_equal(model.classes_[chance.argmax(1)], model.predict(X_new))


def test_the_logistic_loss_gives_better_probabilities_than_the_quadratic(digits):
    X, y, X_new, y_new = digits
    losses = []
    for loss in ("logistic", "quadratic"):
        chance = fitted((X, y), n_components=256, loss=loss).predict_proba(X_new)
        losses.append(-np.log(chance[np.arange(len(y_new)), y_new]).mean())
    assert losses[0] < losses[1]


def test_plain_prediction_leaves_new_examples_as_they_are(digits):
    averaged, plain = (
        fitted(digits, prediction=name).decision_function(digits[2][:5])
        for name in ("averaged", "plain")
    )
    assert np.abs(averaged - plain).max() > 0.01


def test_tensors_arrays_and_shapes_are_all_taken(digits):
    X, y, X_new, _ = digits
    expected = fitted((X, y)).predict(X_new)
    shaped = AugmentedKernelClassifier("rotation(25)", n_components=512, device="cpu")
    shaped.fit(torch.from_numpy(X).reshape(-1, *IMAGE), torch.from_numpy(y))
    assert shaped.shape_ == IMAGE
    np.testing.assert_array_equal(shaped.predict(torch.from_numpy(X_new)), expected)
    np.testing.assert_array_equal(shaped.predict(X_new.reshape(-1, *IMAGE)), expected)
    words = fitted((X, np.array(["even", "odd"])[y % 2]))
    assert set(words.predict(X_new)) == {"even", "odd"}


def test_bytes_stand_for_pixels_in_0_to_1(digits):
    X, y, X_new, _ = digits
    bytes_ = [(part * 255).round().astype(np.uint8) for part in (X, X_new)]
    model = fitted((bytes_[0], y))
    floats = fitted((bytes_[0].astype(np.float32) / 255, y))
    np.testing.assert_allclose(
        model.decision_function(bytes_[1]),
        floats.decision_function(bytes_[1].astype(np.float32) / 255),
        atol=1e-4,
    )
    refused("bytes|divide by 255", model.predict, bytes_[1].astype(np.float32))


@pytest.mark.parametrize("objective", ["first-order", "tangent", "exact"])
def test_memory_changes_nothing_but_the_time(digits, objective):
    """Features that do not fit are computed anew, in smaller blocks; the solution is the same."""
    roomy, tight = (
        fitted(digits, n_components=900, objective=objective, memory=memory, ridge=1e-4, n_views=3)
        for memory in (1.0, 0.02)
    )
    np.testing.assert_allclose(
        roomy.decision_function(digits[2]), tight.decision_function(digits[2]), atol=2e-3
    )


def test_a_progress_call_hears_of_every_example(digits):
    heard = []
    model = AugmentedKernelClassifier(n_components=64, device="cpu")
    model.fit(*digits[:2], progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (600, 600)


def test_the_regressor_learns_several_outputs(digits):
    X, _, X_new, _ = digits
    targets = np.stack([X.sum(1), 1000 * X[:, 20]], 1)
    model = AugmentedKernelRegressor(n_components=512, device="cpu").fit(X, targets)
    assert model.predict(X_new).shape == (len(X_new), 2)
    assert model.score(X, targets) > 0.95
    assert AugmentedKernelRegressor(n_components=64).fit(X, targets[:, 0]).predict(X).ndim == 1


def test_bad_input_is_refused_in_one_line(digits):
    X, y, _, _ = digits

    def fit(X=X, y=y, augmentation="rotation(15)", **options):
        options = {"input_shape": IMAGE, "n_components": 64, "device": "cpu"} | options
        return AugmentedKernelClassifier(augmentation, **options).fit(X, y)

    refused("input_shape=(1, 9, 9)|81|64|one example", fit, input_shape=(1, 9, 9))
    refused("works on image data|input_shape=", fit, input_shape=None)
    refused("one class|at least two", fit, y=np.zeros(600))
    holes = torch.from_numpy(X.copy())
    holes[3, 5] = float("nan")
    refused("NaN|example 3", fit, X=holes)
    refused("NaN|example 3", fit, X=holes.numpy())
    refused("600 examples and y has 5", fit, y=y[:5])
    refused("10,000,000,000 features|would fit|memory=", fit, n_components=10**10, memory=1.0)
    refused("n_components must be a whole number", fit, n_components=0)
    refused("objective|zeroth", fit, objective="zeroth")
    refused("loss|hinge", fit, loss="hinge")
    refused("tangent|quadratic", fit, loss="logistic", objective="tangent")
    refused("prediction", fit, prediction="both")
    refused("precision|bfloat16", fit, precision="float8")
    refused("expected an augmentation|got None", fit, augmentation=None)
    refused("ridge", fit, ridge=-1.0)
    refused("no family is called", fit, augmentation="rotate(15)")
    refused("expecting 64 features", fit().predict, torch.zeros(2, 10))
    refused("two dimensions", fit().predict, torch.zeros(5))
    regressor = AugmentedKernelRegressor(n_components=64)
    refused("600 examples and y has 5", regressor.fit, X, y[:5])
    features = AugmentedFourierFeatures(n_components=64)
    refused("600 examples and y has 5", features.fit, X, y[:5])


@pytest.mark.parametrize(("classes", "curvature"), [(2, 0.25), (10, 0.5)])
def test_the_chosen_penalty_follows_the_curvature_of_the_loss(digits, classes, curvature):
    """A penalty that GCV chose for a loss of curvature 2 is worth less to a flatter one."""
    x, y = digits[0], digits[1] % classes
    options = {"n_components": 100, "ridge": "gcv", "device": "cpu", "n_views": 2}
    quadratic, logistic = (
        AugmentedKernelClassifier("rotation(15)", loss=loss, input_shape=IMAGE, **options).fit(x, y)
        for loss in ("quadratic", "logistic")
    )
    assert logistic.ridge_ == pytest.approx(quadratic.ridge_ * curvature / 2)


def test_the_risk_of_several_outputs_is_the_sum_of_their_shares():
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    wave, noise = np.sin(4 * X[:, 0]), rng.normal(size=400)
    settings = {"n_components": 100, "gamma": 1.0, "precision": "float64", "ridge": 1e-3}

    def risk(*columns):
        y = np.stack(columns, 1)
        return AugmentedKernelRegressor("identity", random_state=0, **settings).fit(X, y).risk_

    alone = risk(wave) / wave.var() + risk(noise) / noise.var()
    assert risk(1000 * wave, noise) == pytest.approx(alone, rel=1e-6)
    assert risk(wave, np.full(400, 0.1)) == pytest.approx(risk(wave) / wave.var(), rel=1e-6)
