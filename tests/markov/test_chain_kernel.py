"""The kernel against its closed form; reversibility found; lossy augmentations symmetrised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from reference_chain import kernel, random_reversible, random_stochastic
from test_chain_finite import a_chain, laws, seeds, sizes

from augury._base.errors import AuguryError
from augury.markov import FiniteChain, footnote, metropolis


@laws
@given(seeds, sizes)
def test_kernel_is_the_papers_and_a_kernel(seed, n):
    chain, matrices, rates, rho, _pi0 = a_chain(seed, n, reversible=True)
    found = chain.reversibility.pi0
    assert chain.is_reversible
    expected = kernel(matrices, rates, found)
    for method in ("direct", "cg", "series"):
        k = chain.kernel(method=method)
        dense = k @ np.eye(n)
        np.testing.assert_allclose(dense, expected, atol=1e-9)
        np.testing.assert_allclose(dense, dense.T, atol=1e-9)
        assert dense.min() >= -1e-12
        assert np.linalg.eigvalsh(dense + dense.T).min() > 0
        np.testing.assert_allclose(k.alpha @ dense, chain.stationary(), atol=1e-9)
        np.testing.assert_allclose(k.columns([n - 1, 0]), expected[:, [n - 1, 0]], atol=1e-9)
        np.testing.assert_allclose(k.T @ rho, expected.T @ rho, atol=1e-9)
        np.testing.assert_allclose(k.inverse_times(expected), np.eye(n), atol=1e-9)
    assert (k.alpha > 0).tolist() == (rho > 0).tolist()


@laws
@given(seeds, sizes)
def test_common_law_is_found(seed, n):
    chain, matrices, _, _, pi0 = a_chain(seed, n, reversible=True)
    found = chain.reversibility.pi0
    for a in matrices:
        flow = found[:, None] * a
        np.testing.assert_allclose(flow, flow.T, atol=1e-12)
    assert found.min() > 0
    assert np.isclose(found.sum(), 1)
    linked = sum(matrices)
    if (np.linalg.matrix_power(linked + np.eye(n), n) > 0).all():  # one class: the law is unique
        np.testing.assert_allclose(found, pi0, atol=1e-12)


def test_each_class_of_states_weighs_as_its_size():
    rng = np.random.default_rng(0)
    laws = [np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.4])]
    a = np.zeros((5, 5))
    a[:3, :3] = random_reversible(rng, laws[0])
    a[3:, 3:] = [[0.4, 0.6], [0.9, 0.1]]
    chain = FiniteChain([a], [1], np.ones(5))
    assert chain.is_reversible
    np.testing.assert_allclose(chain.reversibility.pi0.sum(), 1)
    np.testing.assert_allclose(chain.reversibility.pi0[3:], [0.24, 0.16])


def test_two_reversible_augmentations_without_a_common_law_are_told():
    a, b = [[0.5, 0.5], [0.25, 0.75]], [[0.5, 0.5], [0.5, 0.5]]
    assert FiniteChain([a], [1], [1, 0]).is_reversible
    both = FiniteChain([a, b], [1, 1], [1, 0])
    assert not both.is_reversible
    assert 0.1 < both.reversibility.violation < 0.5


def test_kernel_of_an_irreversible_chain_says_by_how_much_and_what_to_do():
    chain = FiniteChain([[[0, 1, 0], [0, 0, 1], [1, 0, 0]]], [1], [1, 0, 0])
    with pytest.raises(AuguryError) as raised:
        chain.kernel()
    assert str(raised.value) == (
        "a kernel needs reversible augmentations with a common stationary law, but augmentation 0 "
        "is not: its flows between states 0 and 1 differ by 1; use chain.symmetrised() to make it "
        "reversible"
    )
    chain.symmetrised().kernel()
    chain.symmetrised("footnote").kernel()


def test_columns_out_of_range_are_told():
    chain = FiniteChain([np.eye(2)], [1], [1, 0])
    with pytest.raises(AuguryError, match="expected states from 0 to 1"):
        chain.kernel().columns([2])


def test_the_footnotes_example():
    lossy = [[0, 0, 1], [0, 0, 1], [0, 0, 1]]
    expected = np.array([[2, 0, 1], [0, 2, 1], [1, 1, 1]]) / 3
    np.testing.assert_allclose(footnote(lossy).toarray(), expected)


@laws
@given(seeds, sizes)
def test_symmetrising_keeps_the_reach(seed, n):
    rng = np.random.default_rng(seed)
    a = random_stochastic(rng, n)
    law = rng.uniform(0.2, 1, n)
    reach = (a + a.T > 0) & ~np.eye(n, dtype=bool)
    for made, pi0 in (
        (footnote(a), np.ones(n)),
        (metropolis(a), np.ones(n)),
        (metropolis(a, law), law),
    ):
        dense = made.toarray()
        np.testing.assert_allclose(dense.sum(1), 1)
        np.testing.assert_allclose(pi0[:, None] * dense, (pi0[:, None] * dense).T, atol=1e-12)
        assert ((dense > 0) & ~np.eye(n, dtype=bool) == reach).all()
        assert dense.min() >= 0


def test_symmetric_matrices_come_back_as_they_are():
    a = np.array([[0.25, 0.75], [0.75, 0.25]])
    np.testing.assert_array_equal(footnote(a).toarray(), a)
    np.testing.assert_array_equal(metropolis(a).toarray(), a)
    with pytest.raises(AuguryError, match="pi0 must have 2 positive weights"):
        metropolis(a, [1, 0])
