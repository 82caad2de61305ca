"""The updated kernel of Appendix B.1 equals the fresh one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from reference_chain import kernel, random_reversible
from refusal import refused
from test_chain_finite import a_chain, laws, seeds, sizes

from augury.markov import FiniteChain, add_augmentation, change_rates, remove_augmentation


def radius(matrices, rates, deltas):
    n = len(matrices[0])
    a = sum(b * m for b, m in zip(rates, matrices, strict=True))
    m = (1 + sum(rates)) * np.eye(n) - a
    e = sum(d * (np.eye(n) - m) for d, m in zip(deltas, matrices, strict=True))
    return np.abs(np.linalg.eigvals(e @ np.linalg.inv(m))).max()


@pytest.mark.parametrize("method", ["direct", "cg"])
@laws
@given(seeds, sizes)
def test_every_change_by_every_route_gives_the_fresh_kernel(method, seed, n):
    chain, matrices, rates, _, pi0 = a_chain(seed, n, reversible=True)
    rng = np.random.default_rng(seed)
    old = chain.kernel(method=method)
    more = random_reversible(rng, pi0)
    rate = rng.uniform(0.01, 2)
    other = rates * rng.uniform(0.3, 1.7, len(rates))
    b = rng.normal(size=(n, 3))
    changes = {
        "add": ([*matrices, more], [*rates, rate], [*np.zeros(len(rates)), rate]),
        "rates": (matrices, other, other - rates),
    }
    if len(rates) > 1:
        without = np.where(np.arange(len(rates)) == 0, 0, rates)
        changes["remove"] = (matrices, without, without - rates)
    for change, (now, at, deltas) in changes.items():
        for route in ("auto", "series", "woodbury", "cg"):
            if change == "add":
                made = add_augmentation(old, more, rate, route)
            elif change == "rates":
                made = change_rates(old, other, route)
            else:
                made = remove_augmentation(old, 0, route)
            before = [*rates, 0.0] if change == "add" else rates
            expected_radius = radius(now, before, deltas)
            assert np.isclose(made.radius, expected_radius, atol=1e-6)
            assert made.bound >= expected_radius - 1e-9
            if route == "series" and expected_radius > 0.9:
                if expected_radius > 1.001:
                    refused("diverges: its radius is|route='cg'", made.solve, b)
                continue
            fresh = kernel(now, at, made.pi0)
            np.testing.assert_allclose(made @ b, fresh @ b, atol=1e-9)
            np.testing.assert_allclose(made @ b[:, 0], fresh @ b[:, 0], atol=1e-9)
            known = made.solve(b, start=made.old.chain.solve(made.pi0[:, None] * b).x)
            np.testing.assert_allclose(known.x, fresh @ b, atol=1e-9)
            assert known.error < 1e-9


def test_removing_and_slowing_always_converge():
    chain, matrices, _, _, _ = a_chain(8, 10, reversible=True)
    rates = [50.0] * len(matrices)
    old = chain.with_rates(rates).kernel()
    made = change_rates(old, [0.0] * (len(rates) - 1) + [1.0], "series")
    assert made.radius < 1
    assert np.isfinite(made @ np.ones(10)).all()


def test_the_old_solution_saves_products_and_large_chains_have_a_radius():
    n = 1500
    shift = np.roll(np.eye(n), 1, axis=1)
    ring = (shift + shift.T) / 2
    skip = (np.roll(np.eye(n), 7, axis=1) + np.roll(np.eye(n), -7, axis=1)) / 2
    chain = FiniteChain([ring, skip], [4, 1], np.ones(n))
    old = chain.kernel()
    b = np.zeros(n)
    b[3] = 1
    made = change_rates(old, [4, 1.02])
    assert made.route == "cg"
    assert not made.factored
    warm = made.solve(b, start=old @ b)
    cold = made.chain.kernel().solve(b)
    assert np.abs(warm.x - cold.x).sum() <= 3e-10 / n
    assert warm.products < cold.products
    wave = np.cos(2 * np.pi * np.arange(n) / n)
    waves = (1 - np.cos(14 * np.pi * np.arange(n) / n)) / (
        5 - 4 * wave + 1 - np.cos(14 * np.pi * np.arange(n) / n)
    )
    assert np.isclose(made.radius, 0.02 * waves.max(), rtol=1e-3)


def test_a_change_of_few_states_costs_few_solves():
    _chain, *_ = a_chain(4, 12, reversible=True)
    swap = np.eye(12)
    swap[[2, 5]] = swap[[5, 2]]
    old = FiniteChain([swap], [1], np.ones(12)).kernel()
    more = np.eye(12)
    more[[1, 7]] = more[[7, 1]]
    made = add_augmentation(old, more, 3.0)
    assert made.route == "woodbury"
    assert made.touched.tolist() == [1, 7]
    np.testing.assert_allclose(made @ np.eye(12), kernel([swap, more], [1, 3], np.full(12, 1 / 12)))


def test_bad_changes_are_refused():
    chain, matrices, _, _, _ = a_chain(0, 5, reversible=True)
    old = chain.kernel()
    refused("there is no augmentation 9: expected 0 to", remove_augmentation, old, 9)
    refused("route='x': expected one of auto, series", change_rates, old, chain.rates, "x")
    refused("rate 0 is -1", change_rates, old, [-1] * len(matrices))
    lossy = np.zeros((5, 5))
    lossy[:, 0] = 1
    refused("a kernel needs reversible", add_augmentation, old, lossy, 1.0)
    single = FiniteChain([np.eye(2)], [1], [1, 0]).kernel()
    refused("the last augmentation of a chain cannot", remove_augmentation, single, 0)
