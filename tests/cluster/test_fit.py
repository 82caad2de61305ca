"""A kernel model is fitted to shards as it is to the array that they are cut from."""

from __future__ import annotations

import numpy as np
import pytest

from augury import AugmentedKernelClassifier, AugmentedKernelRegressor, AuguryError, open_shards
from augury.kernel import streamed

N = 900


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 12, N)
    x = rng.integers(0, 100, (N, 1, 8, 8), dtype=np.uint8)
    x[np.arange(N), 0, y % 8] += 120
    return x, y


@pytest.fixture
def folder(data, tmp_path):
    x, y = data
    for k in range(3):
        rows = slice(300 * k, 300 * k + 300)
        np.savez(tmp_path / f"part-{k}.npz", x=x[rows], y=y[rows])
    return tmp_path


def make(n_components, objective="first-order"):
    return AugmentedKernelClassifier(
        "rotation(10)", n_components=n_components, n_views=3, objective=objective,
        precision="float64", random_state=0, device="cpu",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("n_components", "objective"),
    [(128, "first-order"), (128, "tangent"), (128, "exact")],
)
def test_shards_give_what_the_array_gives(data, folder, n_components, objective):
    x, y = data
    whole = make(n_components, objective).fit(x, y.astype(str))
    found = make(n_components, objective).fit(open_shards(folder))
    assert list(found.classes_) == list(whole.classes_)
    assert found.gamma_ == whole.gamma_
    assert found.ridge_ == pytest.approx(whole.ridge_, rel=1e-6)
    here, there = whole.decision_function(x), found.decision_function(x)
    np.testing.assert_allclose(there, here, atol=1e-6)


def test_a_cluster_gives_what_this_process_gives(data, folder, client, monkeypatch):
    x, y = data
    shards = open_shards(folder)
    here, there = make(840).fit(shards), make(840).fit(shards, cluster=client)
    np.testing.assert_allclose(there.decision_function(x), here.decision_function(x), atol=1e-6)
    monkeypatch.setattr("augury.kernel.classifier.ROWS", 250)
    for n_components, tolerance in ((128, 1e-6), (840, 1e-3)):  # the second is the solver's own
        held = make(n_components).fit(x, y.astype(str), cluster=client).decision_function(x)
        whole = make(n_components).fit(x, y.astype(str)).decision_function(x)
        np.testing.assert_allclose(held, whole, atol=tolerance)


def test_numbers_are_fitted_too(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 5)).astype(np.float32)
    y = 7 + 3 * x[:, 0] + x[:, 1] ** 2
    for k in range(2):
        np.save(tmp_path / f"x_{k}.npy", x[150 * k : 150 * k + 150])
        np.save(tmp_path / f"y_{k}.npy", y[150 * k : 150 * k + 150])
    shards = open_shards(tmp_path)
    prepared = shards.preparation.transform(x)
    options = {"n_components": 64, "precision": "float64", "random_state": 0, "device": "cpu"}
    whole = AugmentedKernelRegressor("identity", **options).fit(prepared, y)
    found = AugmentedKernelRegressor("identity", **options).fit(shards)
    np.testing.assert_allclose(found.predict(prepared), whole.predict(prepared), atol=1e-5)
    assert found.risk_ == pytest.approx(whole.risk_, rel=1e-5)


def test_a_stopped_fit_goes_on_from_its_journal(folder, tmp_path, monkeypatch):
    shards, journal = open_shards(folder), tmp_path / "journal"
    done = []
    real = streamed.sum_shard

    def stop(shared, shard):
        if shard == 2 and len(done) == 2:
            raise KeyboardInterrupt
        done.append(shard)
        return real(shared, shard)

    monkeypatch.setattr(streamed, "sum_shard", stop)
    with pytest.raises(KeyboardInterrupt):
        make(128).fit(shards, journal=journal)
    done.append("again")
    found = make(128).fit(shards, journal=journal)
    assert done == [0, 1, "again", 2]
    monkeypatch.setattr(streamed, "sum_shard", real)
    plain = make(128).fit(shards)
    x = shards.about.x.numpy()
    np.testing.assert_array_equal(found.decision_function(x), plain.decision_function(x))
    with pytest.raises(AuguryError, match="its n_components differs"):
        make(64).fit(shards, journal=journal)


def test_what_shards_cannot_be_fitted_with_is_refused(folder, data):
    shards = open_shards(folder)
    with pytest.raises(AuguryError, match="logistic loss goes through the examples many times"):
        AugmentedKernelClassifier(loss="logistic").fit(shards)
    with pytest.raises(AuguryError, match="must have classes as labels"):
        make(64).fit(shards, data[1])
    with pytest.raises(AuguryError, match="have numbers as labels"):
        AugmentedKernelRegressor().fit(shards)
    with pytest.raises(AuguryError, match="can fit a regressor only to shards"):
        AugmentedKernelRegressor().fit(*data, cluster="local")
