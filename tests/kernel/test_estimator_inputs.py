"""What estimators take: arrays of any layout, numbers of any type, and what they refuse."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
import torch
from refusal import refused
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from augury.data import load
from augury.kernel import (
    AugmentedFourierFeatures,
    AugmentedKernelClassifier,
    AugmentedKernelRegressor,
    about_model,
    load_model,
)
from augury.kernel.solvers import Batches

IMAGE = {"input_shape": (1, 8, 8), "n_components": 64, "device": "cpu"}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16, y[:400]


def classifier(**options):
    return AugmentedKernelClassifier("rotation(5)", **IMAGE | options)


@pytest.mark.parametrize(
    "changed",
    [
        lambda X: X[::-1][::-1],
        lambda X: np.asfortranarray(X),
        lambda X: X.astype(">f8"),
        lambda X: X.astype(np.longdouble),
    ],
    ids=["reversed", "by columns", "other byte order", "long"],
)
def test_arrays_of_any_layout_are_the_same_examples(digits, changed):
    X, y = digits
    expected = classifier().fit(X, y).decision_function(X)
    model = classifier().fit(changed(X), y)
    np.testing.assert_array_equal(model.decision_function(changed(X)), expected)
    turned = model.predict(X[::-1])  # strides below zero
    np.testing.assert_array_equal(turned, model.predict(X)[::-1])


def test_numpys_numbers_are_numbers(digits, tmp_path):
    grid = {
        "n_components": np.array([32, 64]),
        "random_state": np.array([2]),
        "n_views": np.array([2, 3]),
    }
    found = GridSearchCV(classifier(), grid, cv=2, error_score="raise").fit(*digits)
    assert found.best_params_["n_components"] in (32, 64)
    model = classifier(ridge=np.float32(0.1), gamma=np.float64(0.2)).fit(*digits)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.predict(digits[0]), model.predict(digits[0]))
    features = AugmentedFourierFeatures(n_components=np.int64(64)).fit(digits[0])
    assert features.transform(digits[0]).shape == (400, 64)


def test_bytes_are_not_taken_for_floats_of_another_scale(digits, tmp_path):
    X, y = 255 * digits[0], digits[1]
    model = classifier().fit(X, y)
    words = "floats greater than 1|contains bytes|same scale"
    refused(words, model.predict, X.astype(np.uint8))
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model", device="cpu")
    refused(words, again.predict, torch.from_numpy(X).byte())
    small = classifier().fit(X / 255, y)  # these and bytes are both pixels in [0, 1]
    assert (small.predict(X.round().astype(np.uint8)) == small.predict(X / 255)).mean() > 0.99


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_a_regression_does_not_depend_on_the_mean_of_y(offset, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + offset
    model = AugmentedKernelRegressor(n_components=256, device="cpu").fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.99
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model", device="cpu").score(X[200:], y[200:]) > 0.99
    assert pickle.loads(pickle.dumps(model)).score(X[200:], y[200:]) > 0.99


def test_nothing_of_a_fitted_model_stays_on_a_device(digits):
    """What is pickled moves with the module: its own tensors, or none on a device."""
    spec = "elastic(0.05)"  # maps that are drawn on the device
    for objective in ("first-order", "exact"):
        model = AugmentedKernelClassifier(spec, objective=objective, **IMAGE).fit(*digits)
        moved = copy.deepcopy(model._psi).to("meta")
        assert moved.nodes.device.type == "meta"
        if objective == "exact":  # whole views, whose maps are kept, wherever features are
            assert moved._maps.params.device.type == "cpu"
        else:
            assert moved._maps.params is None
    step = AugmentedFourierFeatures(spec, input_shape=(1, 8, 8), n_components=64).fit(*digits)
    again = pickle.loads(pickle.dumps(step))
    np.testing.assert_array_equal(again.transform(digits[0]), step.transform(digits[0]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ridge": None}, "ridge|'gcv'|None"),
        ({"ridge": 1e300}, "ridge|1e+30"),
        ({"gamma": None}, "gamma|'median'|None"),
        ({"n_components": 512.0}, "n_components|whole number|512.0"),
        ({"n_views": 2.5}, "n_views|whole number"),
        ({"n_views": 5000}, "n_views|4,096|5000"),
        ({"random_state": -1}, "random_state|-1"),
        ({"memory": 0}, "memory|None"),
        ({"memory": float("nan")}, "memory|nan"),
        ({"input_shape": 8}, "input_shape|8"),
        ({"mean": float("nan")}, "mean|a number from|nan"),
        ({"std": float("inf")}, "std|a number from|inf"),
        ({"memory": 0.001, "n_components": 4096}, "GiB|would fit|--memory"),
    ],
)
def test_parameters_out_of_range_are_refused_in_one_line(digits, options, words):
    refused(words, classifier(**options).fit, *digits)
    kept = {name: value for name, value in options.items() if name not in ("ridge", "memory")}
    if kept == options:
        step = {name: value for name, value in IMAGE.items() if name != "device"} | options
        refused(words, AugmentedFourierFeatures("rotation(5)", **step).fit, digits[0])


def test_numbers_beyond_the_precision_are_refused_in_one_line(digits, tmp_path):
    X, y = digits
    refused("1e+300|float32", classifier().fit, X * 1e300, y)
    regressor = AugmentedKernelRegressor(n_components=64, device="cpu")
    refused("y holds|+200", regressor.fit, X, y * 1e200)
    refused("y holds NaN", AugmentedFourierFeatures(n_components=64).fit, X, np.full(400, np.nan))
    refused("there is no model file", about_model, tmp_path / "none")
    (tmp_path / "words").write_bytes(b"abc" * 100)
    refused("not a model file, or is damaged", about_model, tmp_path / "words")


@pytest.mark.parametrize("large", [1e39, 1e30])
def test_numbers_too_large_at_prediction_are_refused_in_one_line(digits, large):
    X, y = digits
    big = np.full((2, 64), large)
    models = [classifier(), classifier(loss="logistic"), AugmentedKernelRegressor(**IMAGE)]
    for model in models:
        model.fit(X, y)
        assert np.isfinite(model.predict(X[:2])).all()
    step = AugmentedFourierFeatures("rotation(5)", **IMAGE).fit(X.astype(np.float32))
    if large > 1e38:
        refused("1e+39|float32", models[0].predict, big)
        refused("1e+39|float32", models[1].predict_proba, big)
        refused("1e+39|float32", models[2].predict, big)
        refused("1e+39|float32", step.transform, big)
    else:  # a wave of any phase is within 1
        assert np.isfinite(step.transform(big)).all()
        assert np.isfinite(models[0].decision_function(big)).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"input_shape": "abc"}, "input_shape|'abc'"),
        ({"input_shape": (1, 8.5, 8)}, "input_shape|8.5"),
        ({"device": None}, "unknown device None"),
        ({"mean": "a"}, "mean|'a'"),
        ({"std": [1.0, "b"]}, "std|'b'"),
    ],
)
def test_parameters_of_the_wrong_kind_are_refused_in_one_line(digits, options, words):
    refused(words, classifier(**options).fit, *digits)
    step = AugmentedFourierFeatures("rotation(5)", **IMAGE | options)
    refused(words, step.fit, digits[0])


@pytest.mark.parametrize("sampling", ["iid", "orthogonal"])
def test_more_features_than_memory_allows_are_refused_before_they_are_drawn(digits, sampling):
    X, y = digits
    asked = {"sampling": sampling, "n_components": 10**9}
    words = "1,000,000,000 features|would fit|memory="
    refused(words, classifier(**asked).fit, X, y)
    refused(words, AugmentedFourierFeatures("rotation(5)", **IMAGE | asked).fit, X)
    step = AugmentedFourierFeatures("rotation(5)", **IMAGE, memory=1e-4).fit(X)
    refused("64 features|would fit", step.transform, np.repeat(X, 10, axis=0))


def test_orthogonal_frequencies_of_many_pixels_count_their_blocks():
    X, y = np.random.default_rng(0).random((12, 3 * 64 * 64)), np.arange(12) % 2
    asked = {"n_components": 400, "gamma": 1.0, "memory": 0.08, "device": "cpu"}
    AugmentedKernelClassifier(**asked).fit(X, y)
    refused(
        "400 features|would fit",
        AugmentedKernelClassifier(**asked, sampling="orthogonal").fit,
        X,
        y,
    )


@pytest.mark.parametrize("memory", [0.1, 0.3])
def test_kept_features_stay_within_the_memory_that_is_allowed(memory, monkeypatch):
    made = []

    class Recorded(Batches):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            made.append((self, options["budget"]))

    monkeypatch.setattr("augury.kernel.base.Batches", Recorded)
    X, y = np.random.default_rng(0).random((15_000, 4)), np.arange(15_000) % 2
    model = AugmentedKernelClassifier(
        n_components=2000, gamma=1.0, ridge=0.1, memory=memory, device="cpu"
    )
    model.fit(X, y)
    batches, budget = made[0]
    held = sum(block.orbit.features.nbytes for block in batches._kept.values())
    assert 0 < held <= budget < memory * 2**30
    assert batches.kept == (memory == 0.3)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("sampling", ["iid", "hadamard"])
def test_a_transformer_survives_a_file(digits, tmp_path, kind, sampling):
    X = digits[0].astype(kind)
    step = AugmentedFourierFeatures("rotation(5)", **IMAGE, sampling=sampling)
    refused("not fitted", step.save, tmp_path / "step")
    step.fit(X).save(tmp_path / "step")
    again = AugmentedFourierFeatures.load(tmp_path / "step", device="cpu")
    np.testing.assert_array_equal(again.transform(X), step.transform(X))
    assert again.transform(X).dtype == kind
    assert list(again.get_feature_names_out()) == list(step.get_feature_names_out())
    refused("AugmentedFourierFeatures", AugmentedKernelClassifier.load, tmp_path / "step")


def test_an_odd_number_of_components_is_rounded_up(digits):
    step = AugmentedFourierFeatures(n_components=33).fit(digits[0])
    assert step.transform(digits[0][:2]).shape == (2, 34)
    assert len(step.get_feature_names_out()) == 34


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: torch.from_numpy(X).to_sparse(), "X is a sparse tensor|to_dense"),
        (lambda X: torch.from_numpy(X).to(torch.float8_e4m3fn), "float8|.float()"),
        (lambda X: torch.from_numpy(X).to(torch.complex64), "complex64|real numbers"),
        (lambda X: scipy.sparse.csr_array(X), "sparse|.toarray()"),
    ],
)
def test_examples_that_are_no_plain_numbers_are_refused_in_one_line(digits, change, words):
    X, y = digits
    fitted = classifier().fit(X, y)
    for call in (lambda X: classifier().fit(X, y), fitted.predict, fitted.predict_proba):
        refused(words, call, change(X))
    step = AugmentedFourierFeatures(n_components=16)
    refused(words, step.fit, change(X))


def test_a_dataset_is_refused_in_one_line_that_works(digits):
    data = load("digits", max_examples=200)
    for call in (
        classifier().fit,
        classifier().fit(*digits).predict,
        AugmentedKernelRegressor(**IMAGE).fit,
        AugmentedFourierFeatures(n_components=16).fit,
    ):
        refused("X is a Dataset; pass what it holds: data.x as X, and data.labels() as", call, data)
    model = AugmentedKernelClassifier(n_components=64, device="cpu")
    assert model.fit(data.x, data.labels()).score(data.x, data.labels()) > 0.9


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("wrap", [np.asarray, torch.from_numpy, list])
def test_targets_that_are_not_finite_are_refused_in_one_line(digits, value, wrap):
    X = digits[0]
    y = digits[1].astype(np.float64)
    y[7] = value
    word = "NaN" if np.isnan(value) else "infinity"
    refused(word, classifier().fit, X, wrap(y))
    refused(word, AugmentedKernelRegressor(**IMAGE).fit, X, wrap(y))
    refused("NaN or infinity", AugmentedFourierFeatures(n_components=16).fit, X, wrap(y))


def test_targets_on_a_curious_tensor_are_refused_in_one_line(digits):
    X, y = digits[0], torch.from_numpy(digits[1]).double()
    refused("y is a sparse tensor", AugmentedKernelRegressor(**IMAGE).fit, X, y.to_sparse())
    refused("float8", AugmentedKernelRegressor(**IMAGE).fit, X, y.to(torch.float8_e4m3fn))
    refused("float8", classifier().fit, X, y.to(torch.float8_e4m3fn))
    assert classifier().fit(X, y.bfloat16()).score(X, digits[1]) > 0.9


def test_images_may_be_lists_and_must_keep_their_shape(digits):
    X, y = digits
    images = X[:60].reshape(60, 8, 8)
    model = AugmentedKernelClassifier("rotation(5)", n_components=16, device="cpu", random_state=0)
    expected = model.fit(images, y[:60]).predict(images)
    for same in (images.tolist(), images[:, None], X[:60]):
        assert np.array_equal(model.predict(same), expected)
    again = copy.deepcopy(model).fit(images.tolist(), y[:60].tolist())
    assert np.array_equal(again.predict(images), expected)
    for wrong in (images.reshape(60, 4, 16), torch.rand(3, 1, 16, 4)):
        refused(
            "examples of X have shape|fitted on examples of shape (1, 8, 8)", model.predict, wrong
        )


def test_square_examples_are_images_as_in_a_ranking():
    """`scaling` is a zoom of images and a gain of series."""
    digits = load_digits()
    X, y = digits.images[:200] / 16, digits.target[:200]
    settings = {"n_components": 128, "gamma": 0.05, "ridge": 1e-4, "random_state": 0}
    grey, with_channel = (
        AugmentedKernelClassifier("scaling(0.6,1.4)", **settings).fit(examples, y)
        for examples in (X, X[:, None])
    )
    assert grey.shape_ == with_channel.shape_ == (1, 8, 8)
    assert np.array_equal(grey.predict_proba(X), with_channel.predict_proba(X[:, None]))
    series = AugmentedKernelClassifier("scaling(0.6,1.4)", **settings).fit(X[:, :3], y)
    assert series.shape_ == (3, 8)


def test_channels_last_are_not_taken_for_rows_of_pixels():
    X, y = np.random.default_rng(0).random((60, 8, 8, 3)), np.arange(60) % 3
    model = AugmentedKernelClassifier("rotation(10)", n_components=64)
    refused("images with the channels last|input_shape=(8, 8, 3)", model.fit, X, y)
    assert model.fit(X.transpose(0, 3, 1, 2), y).shape_ == (3, 8, 8)
    asked = AugmentedKernelClassifier("rotation(10)", n_components=64, input_shape=(8, 8, 3))
    assert asked.fit(X, y).shape_ == (8, 8, 3)
