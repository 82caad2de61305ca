"""Solvers against dense, obvious algebra; their memory; what they say when they cannot."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import reference_objectives as slow
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import nn

from augury.features.orbit import Orbit
from augury.kernel.solvers import (
    Batches,
    RoughProducts,
    available_bytes,
    check_fits,
    descend,
    minimise,
    solve_ridge,
)
from augury.kernel.solvers.gram import accumulate
from augury.kernel.solvers.krylov import block_lanczos, cholesky_qr
from augury.objectives import exact, first_order, multinomial, second_order

LAWS = settings(deadline=None, max_examples=15)


def data(seed, examples, n, d, outputs=2, spread=0.3):
    """Features (n, N, d) of decaying size, weights and centred targets (N, C), in float64."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(examples, d)) / np.sqrt(1 + np.arange(d))
    features = base + spread * rng.normal(size=(n, examples, d)) / np.sqrt(1 + np.arange(d))
    weights = rng.dirichlet(np.ones(n))
    y = base @ rng.normal(size=(d, outputs)) + 0.3 * rng.normal(size=(examples, outputs))
    return features, weights, y - y.mean(0)


def batches(features, weights, y, *, size=7, budget=0.0, penalty=None, counter=None):
    whole, share = torch.from_numpy(features), torch.from_numpy(weights)

    def make(index):
        if counter is not None:
            counter.append(len(index))
        rows = None if penalty is None else torch.from_numpy(penalty)[index]
        return Orbit(whole[:, index], share), rows

    return Batches(make, torch.from_numpy(y), size=size, budget=budget)


@pytest.mark.parametrize("method", ["auto", "cholesky", "krylov"])
@LAWS
@given(
    seed=st.integers(0, 10**6),
    examples=st.integers(2, 12),
    n=st.integers(1, 3),
    d=st.integers(2, 12),
    size=st.integers(1, 12),
)
def test_ridge_is_the_closed_form_of_the_exact_objective(method, seed, examples, n, d, size):
    features, weights, y = data(seed, examples, n, d)
    found = solve_ridge(
        batches(features, weights, y, size=size), ridge=0.05, method=method, tol=1e-10
    )
    expected = slow.ridge(features, weights, y, 0.05)
    np.testing.assert_allclose(found.weights.numpy(), expected, atol=1e-7)


@pytest.mark.parametrize(("examples", "n", "d"), [(14, 1, 5), (14, 3, 5), (8, 1, 40), (6, 3, 40)])
def test_gcv_is_that_of_the_smoother_and_its_choice_the_best_of_the_grid(examples, n, d):
    features, weights, y = data(0, examples, n, d)
    found = solve_ridge(batches(features, weights, y), ridge="gcv")
    assert found.method == "eigen"
    assert found.risk == pytest.approx(slow.gcv(features, weights, y, found.ridge), rel=1e-6)
    for factor in (0.1, 0.5, 2, 10):
        assert slow.gcv(features, weights, y, factor * found.ridge) >= found.risk * 0.999
    same = solve_ridge(batches(features, weights, y), ridge=found.ridge)
    torch.testing.assert_close(same.weights, found.weights, atol=1e-9, rtol=0)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("budget", [0.0, 1e9])
def test_the_krylov_space_finds_what_eigenvalues_find(monkeypatch, n, budget):
    examples, d = 400, 500
    monkeypatch.setattr("augury.kernel.solvers.ridge._SMALL", 1)
    features, weights, y = data(1, examples, n, d)
    found = solve_ridge(batches(features, weights, y, size=100, budget=budget), tol=1e-6)
    assert found.method == "krylov"
    assert found.residual <= 1e-6
    gram = sum(w * f.T @ f for w, f in zip(weights, features, strict=True)) / examples
    cross = sum(w * f for w, f in zip(weights, features, strict=True)).T @ y / examples
    true = np.linalg.solve(gram + found.ridge * np.eye(d), cross)
    np.testing.assert_allclose(found.weights.numpy(), true, atol=1e-4 * np.abs(true).max())
    left = cross - (gram + found.ridge * np.eye(d)) @ found.weights.numpy()
    assert np.linalg.norm(left) / np.linalg.norm(cross) == pytest.approx(found.residual, rel=0.05)
    psi = sum(w * f for w, f in zip(weights, features, strict=True))
    smoother = psi @ np.linalg.solve(gram + found.ridge * np.eye(d), psi.T) / examples
    risk = ((y - smoother @ y) ** 2).sum() / examples / (1 - np.trace(smoother) / examples) ** 2
    assert found.risk == pytest.approx(risk, rel=0.1)  # its freedom is measured by probes


def test_cholesky_with_gcv_solves_for_the_penalty_that_the_space_chose(monkeypatch):
    monkeypatch.setattr("augury.kernel.solvers.ridge._SMALL", 1)
    features, weights, y = data(1, 400, 2, 500)
    some = batches(features, weights, y, size=100)
    found = solve_ridge(some, method="cholesky")
    assert found.method == "cholesky"
    assert abs(np.log(found.ridge / solve_ridge(some).ridge)) < 1
    expected = slow.ridge(features, weights, y, found.ridge)
    np.testing.assert_allclose(found.weights.numpy(), expected, atol=1e-7)


def test_the_penalty_is_that_of_all_eigenvalues_though_they_fall_slowly(monkeypatch):
    rng = np.random.default_rng(0)
    scale = 1 + np.arange(500)
    base = rng.normal(size=(1, 600, 500)) / scale
    y = base[0] @ (rng.normal(size=(500, 2)) * np.sqrt(scale)[:, None])
    y = y + 0.3 * rng.normal(size=(600, 2))
    held = batches(base, np.ones(1), y - y.mean(0), size=100, budget=1e9)
    true = solve_ridge(held).ridge
    monkeypatch.setattr("augury.kernel.solvers.ridge._SMALL", 1)
    # λ falls while the space grows; one that was taken too early is larger by many steps
    assert abs(np.log(solve_ridge(held, method="cholesky").ridge / true)) < 0.3


def test_a_space_that_is_all_there_is_needs_no_factorisation(monkeypatch):
    monkeypatch.setattr("augury.kernel.solvers.ridge._SMALL", 1)
    rng = np.random.default_rng(0)
    rank = rng.normal(size=(40, 8)) @ rng.normal(size=(8, 30))
    y = rng.normal(size=(40, 1))
    found = solve_ridge(
        batches(rank[None], np.ones(1), y - y.mean(0), budget=1e9), ridge=1e-3, tol=1e-300
    )
    assert found.method == "krylov"
    assert found.space.complete
    wanted = np.linalg.solve(rank.T @ rank / 40 + 1e-3 * np.eye(30), rank.T @ (y - y.mean(0)) / 40)
    np.testing.assert_allclose(found.weights, wanted, rtol=1e-6)


def test_a_space_knows_what_it_grew_from():
    rng = np.random.default_rng(0)
    root = torch.from_numpy(rng.normal(size=(30, 30)))
    start = torch.from_numpy(rng.normal(size=(30, 4)))
    space = block_lanczos(lambda v: root @ (root.mT @ v), start, lambda found: 0, most=5)
    torch.testing.assert_close(space.start(), space.project(start))


@pytest.mark.parametrize("scale", [1.0, 1e-4, 0.0])
def test_cholesky_qr_is_a_factorisation_also_of_near_dependent_columns(scale):
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[:, 3] = x[:, 2] + scale * x[:, 3]
    q, r = cholesky_qr(x)
    torch.testing.assert_close(q @ r, x)
    torch.testing.assert_close(q.mT @ q, torch.eye(4, dtype=torch.float64))


def test_a_penalty_adds_its_rows():
    features, weights, y = data(2, 10, 1, 4)
    rows = np.random.default_rng(3).normal(size=(10, 4))
    plain = batches(features, weights, y, penalty=rows)
    found = solve_ridge(plain, ridge=0.1, method="cholesky")
    gram = (features[0].T @ features[0] + rows.T @ rows) / 10
    expected = np.linalg.solve(gram + 0.1 * np.eye(4), features[0].T @ y / 10)
    np.testing.assert_allclose(found.weights.numpy(), expected, atol=1e-10)
    for method in ("auto", "krylov"):
        other = solve_ridge(plain, ridge=0.1, method=method, tol=1e-12)
        np.testing.assert_allclose(other.weights.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize(("examples", "d"), [(30, 6), (8, 40), (900, 800)])
def test_the_risk_with_a_penalty_is_that_of_its_smoother(examples, d):
    features, weights, y = data(5, examples, 1, d)
    rows = np.random.default_rng(6).normal(size=(examples, d)) / np.sqrt(1 + np.arange(d))
    found = solve_ridge(batches(features, weights, y, penalty=rows, size=300))
    psi, share = features[0], found.ridge * examples * np.eye(d)
    smoother = psi @ np.linalg.solve(psi.T @ psi + rows.T @ rows + share, psi.T)
    left = 1 - np.trace(smoother) / examples
    risk = ((y - smoother @ y) ** 2).sum() / examples / left**2
    exact = found.method == "eigen"
    assert found.risk == pytest.approx(risk, rel=1e-6 if exact else 0.1)  # by probes, if not


def test_many_targets_are_solved_by_cholesky(monkeypatch):
    monkeypatch.setattr("augury.kernel.solvers.ridge._SMALL", 1)
    features, weights, y = data(4, 90, 1, 80, outputs=40)
    found = solve_ridge(batches(features, weights, y, size=30))
    assert found.method == "cholesky"
    gram = features[0].T @ features[0] / 90
    true = np.linalg.solve(gram + found.ridge * np.eye(80), features[0].T @ y / 90)
    np.testing.assert_allclose(found.weights.numpy(), true, atol=1e-8)


def roughly(*args, **options):
    """Accumulate as a machine would that rounds too much."""
    sums = accumulate(*args, **options)
    noise = torch.randn(30, 30, generator=torch.Generator().manual_seed(1)).double()
    gram = sums.gram.double() + 0.02 * (noise + noise.mT)
    return dataclasses.replace(sums, gram=gram.to(sums.gram))


@pytest.mark.parametrize("ridge", [1e-6, "gcv"])
def test_rough_products_raise_the_penalty_and_say_so(monkeypatch, ridge):
    some = batches(*data(0, 40, 1, 30))
    monkeypatch.setattr("augury.kernel.solvers.ridge.accumulate", roughly)
    monkeypatch.setattr("augury.kernel.solvers.ridge._SMALL", 1)
    with pytest.warns(ConvergenceWarning, match="raised to"):
        found = solve_ridge(some, ridge=ridge, method="cholesky")
    assert found.weights.isfinite().all()
    assert found.ridge > 1e-6
    with pytest.raises(RoughProducts):
        solve_ridge(some, ridge=ridge, method="cholesky", raising=False)


def test_features_that_are_not_finite_are_refused(monkeypatch):
    some = batches(*data(0, 40, 1, 30))

    def spoilt(*args, **options):
        sums = accumulate(*args, **options)
        return dataclasses.replace(sums, gram=sums.gram * float("nan"))

    monkeypatch.setattr("augury.kernel.solvers.ridge.accumulate", spoilt)
    refused("not finite", lambda: solve_ridge(some, ridge=0.1, method="cholesky"))


def test_a_solver_without_memory_for_its_matrix_warns_and_goes_on(monkeypatch):
    monkeypatch.setattr("augury.kernel.solvers.ridge._SMALL", 1)
    monkeypatch.setattr("augury.kernel.solvers.ridge._STEPS", 2)
    features, weights, y = data(5, 90, 1, 80)
    hard = batches(features, weights, y, size=30)
    with pytest.warns(ConvergenceWarning, match="after 2 products with a residual"):
        solve_ridge(hard, ridge=1e-9, gram_bytes=1.0)
    assert solve_ridge(hard, ridge=1e-9).method == "cholesky"  # with memory, there is a way out
    wide = batches(features, weights, np.tile(y, 30), size=30)
    refused("60 targets|memory=", solve_ridge, wide, gram_bytes=1.0)


def test_blocks_are_kept_where_they_fit_and_made_anew_where_not():
    features, weights, y = data(6, 10, 1, 4)
    made: list[int] = []
    none = batches(features, weights, y, size=4, counter=made)
    for _ in range(2):
        assert [len(block.y) for block in none] == [4, 4, 2]
    assert made == [1, 4, 4, 2, 4, 4, 2]  # one to look at, then two passes
    made.clear()
    some = batches(features, weights, y, size=4, budget=4 * 4 * 8, counter=made)
    assert not some.kept
    for _ in range(2):
        list(some)
    assert made == [1, 4, 4, 2, 4, 2]
    made.clear()
    whole = batches(features, weights, y, size=4, budget=1e6, counter=made)
    assert whole.kept
    for _ in range(3):
        list(whole)
    assert made == [1, 4, 4, 2]


@LAWS
@given(seed=st.integers(0, 10**6), size=st.integers(1, 9))
def test_sums_do_not_depend_on_the_blocks(seed, size):
    features, weights, y = data(seed, 9, 2, 3)
    one = accumulate(batches(features, weights, y, size=9), gram=True)
    other = accumulate(batches(features, weights, y, size=size), gram=True)
    for a, b in ((one.gram, other.gram), (one.cross, other.cross), (one.probes, other.probes)):
        torch.testing.assert_close(a, b)
    assert one.power == pytest.approx(other.power)


def test_the_gram_matrix_is_whole_beyond_one_block(monkeypatch):
    monkeypatch.setattr("augury.kernel.solvers.gram._BLOCK", 3)
    features, weights, y = data(7, 9, 2, 8)
    found = accumulate(batches(features, weights, y), gram=True).gram
    expected = sum(w * f.T @ f for w, f in zip(weights, features, strict=True)) / 9
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_block_lanczos_ends_when_the_space_is_whole():
    low_rank = torch.randn(30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    matrix = low_rank @ low_rank.mT
    start = torch.randn(30, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    space = block_lanczos(lambda v: matrix @ v, start, lambda found: 1, most=99)
    top = torch.linalg.eigvalsh(matrix)[-3:]
    torch.testing.assert_close(space.values[-3:], top)
    square = space.basis.mT @ space.basis
    torch.testing.assert_close(square, torch.eye(len(square), dtype=torch.float64))


@pytest.mark.parametrize("objective", [first_order, second_order, exact])
def test_a_smooth_loss_is_minimised(objective):
    features, weights, _ = data(8, 60, 2, 5)
    y = np.random.default_rng(9).integers(0, 3, 60)
    head = nn.Linear(5, 3, dtype=torch.float64)
    some = batches(features, weights, y, size=25)
    found = solve_ridge(batches(features, weights, np.eye(3)[y] - 1 / 3), ridge=0.01)
    for space in (None, found.space):
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
        minimise(head, some, objective, multinomial, ridge=0.01, space=space, tol=1e-9)
        total = sum(objective(head, b.orbit, b.y, multinomial).sum() for b in some) / 60
        slope = torch.autograd.grad(total + 0.01 * head.weight.square().sum(), head.parameters())
        assert max(float(part.abs().max()) for part in slope) < 1e-7


def test_too_few_iterations_are_said():
    features, weights, _ = data(8, 60, 2, 5)
    some = batches(features, weights, np.random.default_rng(9).integers(0, 3, 60))
    head = nn.Linear(5, 3, dtype=torch.float64)
    with pytest.warns(ConvergenceWarning, match="after 2 iterations"):
        minimise(head, some, first_order, multinomial, ridge=0.01, iterations=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        minimise(head, some, first_order, multinomial, ridge=0.01)


def test_the_first_order_fit_is_scikit_learns_on_averaged_features():
    features, weights, _ = data(10, 80, 3, 4)
    y = np.random.default_rng(11).integers(0, 3, 80)
    head = nn.Linear(4, 3, dtype=torch.float64)
    minimise(head, batches(features, weights, y), first_order, multinomial, ridge=0.02, tol=1e-10)
    psi = sum(w * f for w, f in zip(weights, features, strict=True))
    other = LogisticRegression(C=1 / (2 * 80 * 0.02), tol=1e-10, max_iter=1000).fit(psi, y)
    np.testing.assert_allclose(head.weight.detach().numpy(), other.coef_, atol=1e-5)


def test_descent_takes_the_steps_of_momentum():
    features, weights, _ = data(12, 6, 2, 3)
    y = torch.tensor([0, 1, 0, 1, 1, 0])
    orbit = Orbit(torch.from_numpy(features), torch.from_numpy(weights))

    def orbit_of(index):
        return Orbit(orbit.features[:, index], orbit.weights)

    heads = [nn.Linear(3, 2, bias=False, dtype=torch.float64) for _ in range(2)]
    for head in heads:
        nn.init.ones_(head.weight)
    seen = []
    descend(
        heads[0],
        orbit_of,
        y,
        exact,
        multinomial,
        rate=0.1,
        batch=6,
        epochs=3,
        ridge=0.01,
        on_epoch=seen.append,
    )
    speed = torch.zeros(2, 3, dtype=torch.float64)
    for _ in range(3):  # one batch an epoch: the order of examples changes nothing
        value = exact(heads[1], orbit, y, multinomial).mean()
        (slope,) = torch.autograd.grad(
            value + 0.01 * heads[1].weight.square().sum(), heads[1].weight
        )
        speed = 0.9 * speed + slope
        heads[1].weight.data -= 0.1 * speed
    torch.testing.assert_close(heads[0].weight, heads[1].weight)
    assert seen == [1, 2, 3]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's own count")
def test_memory_that_was_freed_counts_as_free():
    def held():
        return 4096 * int(Path("/proc/self/statm").read_text().split()[1])

    before = held()
    torch.ones(7 * 2**20)  # 28 MiB, freed: after that, tensors under it come from the heap
    many = [torch.ones(2**20) for _ in range(100)]
    some = many[::10]  # between the others, which therefore do not go by themselves
    del many
    available_bytes(torch.device("cpu"))
    assert held() < before + 2**27
    assert len(some) == 10


def test_what_fits_is_said():
    check_fits(lambda d: 8 * d, 100, 800)
    refused("100 features|60 would fit|memory=", check_fits, lambda d: 8 * d, 100, 480)
    refused("not even two", check_fits, lambda d: 8 * d + 1e6, 100, 480)
    assert available_bytes(torch.device("cpu")) > 2**20


def test_bad_penalties_are_refused():
    features, weights, y = data(13, 5, 1, 3)
    for bad in (-1.0, 0.0, float("nan"), "cv"):
        refused("ridge must be positive", solve_ridge, batches(features, weights, y), ridge=bad)
