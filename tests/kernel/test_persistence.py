"""Models in files: the same predictions, and one line for what is damaged."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch
from kernel_models import fitted
from refusal import refused
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors

from augury._base.errors import AuguryError
from augury.augmentations import Sampled
from augury.kernel import (
    AugmentedKernelClassifier,
    AugmentedKernelRegressor,
    about_model,
    load_model,
    save_model,
)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "logistic"},
        {"sampling": "hadamard", "kernel": "matern", "mean": 0.1, "std": 0.5},
        {"augmentation": "translation(0.1) >> flips", "objective": "exact"},
        {"augmentation": "noise(0.1)", "objective": "tangent", "mean": [0.2]},
    ],
)
def test_a_saved_model_predicts_the_same(digits, options, tmp_path):
    model = fitted(digits, **({"n_components": 128} | options))
    model.save(tmp_path / "model")
    again = AugmentedKernelClassifier.load(tmp_path / "model")
    np.testing.assert_allclose(
        again.predict_proba(digits[2]), model.predict_proba(digits[2]), atol=1e-5
    )
    assert again.get_params() | {"device": 0, "augmentation": 0} == model.get_params() | {
        "device": 0,
        "augmentation": 0,
    }
    assert again.describe() == model.describe()


def test_regressors_and_words_survive_a_file(digits, tmp_path):
    X, y, X_new, _ = digits
    model = AugmentedKernelRegressor(n_components=64, device="cpu").fit(X, X[:, :2])
    save_model(model, tmp_path / "numbers", about={"kind": "vector"})
    again = load_model(tmp_path / "numbers", device="cpu")
    np.testing.assert_allclose(again.predict(X_new), model.predict(X_new))
    assert about_model(tmp_path / "numbers") == {"kind": "vector"}
    words = fitted((X, np.array(["even", "odd"])[y % 2]), n_components=64)
    words.save(tmp_path / "words")
    assert list(load_model(tmp_path / "words").classes_) == ["even", "odd"]
    said = "words holds an AugmentedKernelClassifier; read it with AugmentedKernelClassifier.load"
    refused(said, AugmentedKernelRegressor.load, tmp_path / "words")


def test_what_is_no_path_of_a_file_is_refused_in_one_line(digits, tmp_path):
    refused("is a directory; give the path of the model file in it", load_model, tmp_path)
    refused("is a directory", AugmentedKernelClassifier.load, str(tmp_path))
    model = fitted(digits, n_components=64)
    for bad in (None, 3, ""):
        refused("expected the path of a file or directory, got", model.save, bad)


def test_damaged_or_changed_files_are_refused_in_one_line(digits, tmp_path):
    path = tmp_path / "model"
    fitted(digits, n_components=64).save(path)
    whole = path.read_bytes()
    refused("there is no model file", load_model, tmp_path / "none")
    for length in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        refused("damaged or cut short|again", load_model, path)
    for place in (20, len(whole) // 2, len(whole) - 3):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(bytes(changed))
        with pytest.raises(AuguryError) as caught:
            load_model(path)
        assert "\n" not in str(caught.value)
    path.write_bytes(pickle.dumps({"weights": 1}))
    refused("not a model file", load_model, path)
    path.write_bytes(write_tensors({"weights": torch.zeros(2)}))
    refused("no augury model", load_model, path)


def rewrite(path, change):
    """Change a model's settings or tensors and sign them anew, as an attacker could."""
    from safetensors import safe_open

    from augury.kernel.persistence import _digest

    with safe_open(str(path), framework="pt") as file:
        settings = json.loads(file.metadata()["augury"])
    tensors = read_tensors(path.read_bytes())
    change(settings, tensors)
    text = json.dumps(settings, sort_keys=True)
    path.write_bytes(write_tensors(tensors, {"augury": text, "digest": _digest(text, tensors)}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s, t: s["params"].update(augmentation="sampled(os:getcwd)"), "not allowed"),
        (lambda s, t: s["params"].update(augmentation="__import__('os')"), "cannot read"),
        (lambda s, t: s["params"].update(n_views=10**9), "n_views"),
        (lambda s, t: s["params"].update(n_components="many"), "must"),
        (lambda s, t: s["params"].update(surprise=1), "surprise"),
        (lambda s, t: s["params"].update(random_state=None), "random_state is None"),
        (lambda s, t: s.update(format=99), "format 99"),
        (lambda s, t: s.update(shape=[1, 9, 9]), "must have"),
        (lambda s, t: s.update(kind="subprocess"), "kind must be one of"),
        (lambda s, t: s.pop("gamma"), "gamma"),
        (lambda s, t: s.update(classes=[1, 2]), "must have"),
        (lambda s, t: t.update(weights=torch.zeros(3, 3)), "must have (64, 10)"),
        (lambda s, t: t.update(bias=t["bias"] * float("nan")), "NaN"),
        (lambda s, t: t.pop("phi.frequencies"), "phi.frequencies"),
    ],
)
def test_no_change_of_a_file_runs_code_or_breaks_loading(digits, tmp_path, change, words):
    path = tmp_path / "model"
    fitted(digits, n_components=64).save(path)
    rewrite(path, change)
    refused(words, load_model, path)


def halve(x):
    return x / 2


def test_what_cannot_be_saved_is_said(digits, tmp_path):
    model = fitted(digits, Sampled(halve), n_components=64)
    refused("contains code", model.save, tmp_path / "model")
    refused("not fitted", AugmentedKernelClassifier().save, tmp_path / "model")
    assert not list(tmp_path.iterdir())
