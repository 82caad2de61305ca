"""The finite chain against dense linear algebra, its bounds and its complaints."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_chain import (
    law_after,
    printed_l2_bound,
    random_reversible,
    random_stochastic,
    stationary,
    total_variation,
    transition,
)

from augury._base.errors import AuguryError
from augury.markov import FiniteChain

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 12)
laws = settings(max_examples=25, deadline=None)


def a_chain(seed, n, reversible=False):
    rng = np.random.default_rng(seed)
    pi0 = rng.uniform(0.2, 1, n)
    pi0 /= pi0.sum()
    count = int(rng.integers(1, 4))
    make = (
        (lambda: random_reversible(rng, pi0)) if reversible else lambda: random_stochastic(rng, n)
    )
    matrices = [make() for _ in range(count)]
    rates = rng.uniform(0.1, 3, count)
    restart = rng.random(n) * (rng.random(n) < 0.5)
    restart[int(rng.integers(n))] += 1
    return FiniteChain(matrices, rates, restart), matrices, rates, restart / restart.sum(), pi0


@laws
@given(seeds, sizes, st.booleans())
def test_stationary_law_and_law_after_n_steps_are_the_papers(seed, n, reversible):
    chain, matrices, rates, rho, _ = a_chain(seed, n, reversible)
    expected = stationary(matrices, rates, rho)
    routes = ["direct", "series", "cg"] if reversible else ["direct", "series"]
    for method in routes:
        np.testing.assert_allclose(chain.stationary(method=method), expected, atol=1e-9)
    for steps in (0, 1, 2, 7):
        np.testing.assert_allclose(
            chain.distribution(steps), law_after(steps, matrices, rates, rho), atol=1e-9
        )
    r = transition(matrices, rates, rho)
    np.testing.assert_allclose(chain.R @ np.eye(n), r, atol=1e-12)
    np.testing.assert_allclose(chain.R.rmatmat(np.eye(n)).T, r, atol=1e-12)
    np.testing.assert_allclose(expected @ r, expected, atol=1e-12)


@laws
@given(seeds, sizes, st.booleans())
def test_error_bounds_hold(seed, n, reversible):
    chain, matrices, rates, rho, _ = a_chain(seed, n, reversible)
    expected = stationary(matrices, rates, rho)
    for method in ["series", "cg"] if reversible else ["series"]:
        for tol in (1e-2, 1e-5):
            found = chain.solve(rho, method=method, tol=tol)
            assert np.abs(found.x - expected).sum() <= found.error * (1 + 1e-9) + 1e-15
            assert found.error <= tol


@laws
@given(seeds, sizes)
def test_total_variation_bound_is_never_exceeded(seed, n):
    (
        chain,
        *_,
    ) = a_chain(seed, n)
    pi = chain.stationary()
    start = np.eye(n)[seed % n]
    for steps in (0, 1, 2, 5, 20):
        bound = chain.mixing_bound(steps) + 1e-9
        assert total_variation(chain.distribution(steps), pi) <= bound
        assert total_variation(chain.distribution(steps, start), pi) <= bound


def test_printed_l2_bound_is_exceeded_where_ours_holds():
    # every state goes to one: then ‖A‖₂ is √N β, and not β at most
    collapse = np.zeros((50, 50))
    collapse[:, 0] = 1
    chain = FiniteChain([collapse], [10.0], np.eye(50)[1])
    pi = chain.stationary()
    after = [chain.distribution(steps) for steps in range(6)]
    printed = [np.linalg.norm(p - pi) / printed_l2_bound(k, 10.0) for k, p in enumerate(after)]
    assert max(printed) > 1.2
    assert all(total_variation(p, pi) <= chain.mixing_bound(k) + 1e-12 for k, p in enumerate(after))


def test_large_chain_solves_without_factors():
    # a ring: cg and series at a size past the direct route, against the closed form
    n, beta = 3000, 4.0
    ring = sp.coo_array(
        (
            np.full(2 * n, 0.5),
            (np.tile(np.arange(n), 2), np.r_[np.arange(n) + 1, np.arange(n) - 1] % n),
        )
    )
    restart = np.zeros(n)
    restart[7] = 1
    chain = FiniteChain([ring], [beta], restart)
    root = (1 + beta - np.sqrt(1 + 2 * beta)) / beta
    away = np.minimum((np.arange(n) - 7) % n, (7 - np.arange(n)) % n)
    expected = root**away / np.sqrt(1 + 2 * beta)
    for method in ("auto", "cg", "series"):
        found = chain.solve(chain.rho, method=method)
        assert np.abs(found.x - expected).sum() <= 1.01e-10
        assert found.method == ("cg" if method == "auto" else method)
    assert (
        chain.solve(chain.rho, method="cg").products
        < chain.solve(chain.rho, method="series").products
    )
    columns = np.stack([np.roll(chain.rho, k) for k in range(5)], axis=1)
    one = chain.solve(columns, method="cg", workers=1).x
    np.testing.assert_array_equal(one, chain.solve(columns, method="cg", workers=3).x)


def test_a_chain_that_hardly_ever_restarts_goes_on_in_double():
    n, beta = 1200, 1e7
    shift = np.roll(np.eye(n), 1, axis=1)
    chain = FiniteChain([(shift + shift.T) / 2], [beta], np.eye(n)[0])
    exact = chain.solve(chain.rho, method="direct").x
    found = chain.solve(chain.rho, method="cg", tol=1e-6)
    assert found.error <= 1e-6
    assert np.abs(found.x - exact).sum() <= 2e-6
    with pytest.raises(AuguryError, match=r"cg stopped at a relative error of .* method='direct'"):
        chain.solve(chain.rho, method="cg", tol=1e-13)


def test_a_good_first_guess_saves_products():
    chain, *_ = a_chain(5, 12, reversible=True)
    cold = chain.solve(chain.rho, method="cg")
    warm = chain.solve(chain.rho, method="cg", start=cold.x)
    assert warm.products == 0
    assert warm.error <= 1e-10


def test_with_rates_is_the_same_chain_at_other_rates():
    chain, matrices, _, rho, _ = a_chain(3, 8)
    rates = [0.5 + k for k in range(len(matrices))]
    np.testing.assert_allclose(
        chain.with_rates(rates).stationary(), stationary(matrices, rates, rho), atol=1e-9
    )


def test_checks_read_well():
    chain, *_ = a_chain(1, 6, reversible=True)
    text = str(chain.checks())
    assert "a kernel follows" in text
    assert "6 states" in text
    assert len(text.splitlines()) == 3
    lossy = FiniteChain([[[0, 1], [0, 1]]], [1], [1, 0])
    assert not lossy.is_reversible
    assert "symmetrise" in str(lossy.checks())
    assert lossy.checks().violation == 1.0
    assert repr(lossy) == "FiniteChain(2 states, rates 1)"


HALF = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("matrices", "rates", "restart", "message"),
    [
        ([HALF, [[1, 0], [0.3, 0.6]]], [1, 1], [1, 0], "row 1 of augmentation 1 sums to 0.9"),
        ([[[1.5, -0.5], [0, 1]]], [1], [1, 0], "entry -0.5 in row 0; probabilities must be 0 or"),
        ([HALF], [-1], [1, 0], "rates must be 0 or more, but rate 0 is -1.0; use 0 to leave"),
        ([HALF], [float("nan")], [1, 0], "rate 0 is nan"),
        ([HALF, HALF], [0, 0], [1, 0], "all rates of the chain are zero, so it would never move"),
        ([HALF], [1, 2], [1, 0], "got 1 augmentation and 2 rates"),
        ([], [], [1], "needs at least one augmentation"),
        ([HALF], [1], [0, 0], "no restart weight is positive; set one for each state"),
        ([HALF], [1], [2, -1], "restart weights must be 0 or more, but that of state 1 is -1.0"),
        ([HALF], [1], [1, 0, 0], "expected 2 restart weights, one per state; got shape (3,)"),
        ([HALF, [[1.0]]], [1, 1], [1, 0], "augmentation 1 has shape (1, 1); expected (2, 2)"),
        ([[[0.5, 0.5]]], [1], [1], "augmentation 0 has shape (1, 2); expected a square matrix"),
    ],
)
def test_bad_input_is_said_in_one_line(matrices, rates, restart, message):
    with pytest.raises(AuguryError) as raised:
        FiniteChain(matrices, rates, restart)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_bad_questions_are_said_in_one_line():
    chain = FiniteChain([HALF], [1], [1, 0])
    with pytest.raises(AuguryError, match="method='qr': expected one of auto, cg, series, direct"):
        chain.solve(chain.rho, method="qr")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(AuguryError, match="expected 2 rows, one per state; got shape"):
        chain.solve(np.ones(3))
    with pytest.raises(AuguryError, match="how='magic': expected one of metropolis, footnote"):
        chain.symmetrised("magic")
    lossy = FiniteChain([[[0, 1], [0, 1]]], [1], [1, 0])
    with pytest.raises(AuguryError, match=r"conjugate gradients needs reversible .* differ by 1"):
        lossy.solve(lossy.rho, method="cg")
