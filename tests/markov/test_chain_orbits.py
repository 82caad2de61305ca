"""Orbits enumerated, and chains among nearest neighbours."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch
from refusal import refused
from sklearn.datasets import load_digits

from augury.augmentations import parse
from augury.markov import enumerate_orbits, nearest_chain, stream


def test_orbits_of_a_dot_are_the_torus():
    dot = np.zeros((1, 1, 4, 4))
    dot[0, 0, 1, 2] = 1
    orbits = enumerate_orbits(dot, "chain(pixel_shifts:2, quarter_turns:1)")
    assert orbits.states.shape == (16, 1, 4, 4)
    assert sorted(orbits.states.reshape(16, 16).argmax(1)) == list(range(16))
    np.testing.assert_array_equal(orbits.states[orbits.examples], dot)
    assert orbits.chain.rates == (2, 1)
    assert orbits.chain.is_reversible
    shifts, turns = (a.toarray() for a in orbits.chain.matrices)
    np.testing.assert_allclose(np.sort(shifts, axis=1)[:, -5:], 0.2)
    assert turns.diagonal().min() >= 0.25 - 1e-12


def test_transitions_are_what_the_maps_do():
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (3, 1, 3, 3)).astype(float))
    chain = parse("chain(quarter_turns >> horizontal_flip:1, pixel_shifts:1)")
    orbits = enumerate_orbits(x, chain)
    known = {state.tobytes(): k for k, state in enumerate(orbits.states)}
    assert len(known) == len(orbits.states)
    for part, a in zip(chain.parts, orbits.chain.matrices, strict=True):
        rule = part.nodes(part.size)
        views = part.apply(torch.from_numpy(orbits.states).unsqueeze(0), rule.params)
        expected = np.zeros(a.shape)
        for weight, images in zip(rule.weights, views, strict=True):
            for start, image in enumerate(images):
                expected[start, known[image.numpy().tobytes()]] += weight
        np.testing.assert_allclose(a.toarray(), expected)


def test_examples_that_are_alike_share_a_state_and_add_up():
    x = np.zeros((3, 1, 2, 2))
    x[0, 0, 0, 0] = x[1, 0, 0, 1] = x[2, 0, 0, 0] = 1
    x[2] *= 1.0
    x[1, 0, 1, 1] = -0.0  # the same number as 0, other bytes
    orbits = enumerate_orbits(x, "chain(horizontal_flip:1)", restart=[1, 2, 5])
    assert len(orbits.states) == 2
    assert orbits.examples.tolist() == [0, 1, 0]
    np.testing.assert_allclose(orbits.chain.rho, [6 / 8, 2 / 8])


def test_a_limit_past_and_augmentations_without_an_end_are_refused():
    x = load_digits().images[:10, None]
    refused(
        "10 examples under chain(pixel_shifts:1)|more than 100 states; raise limit=",
        enumerate_orbits,
        x,
        "chain(pixel_shifts:1)",
        limit=100,
    )
    refused(
        "rotation(15) has no finite number of maps|quarter_turns|nearest_chain",
        enumerate_orbits,
        x,
        "chain(rotation(15):1, flips:1)",
    )
    refused("10 restart weights", enumerate_orbits, x, "chain(flips:1)", restart=[1, 2])


def test_versions_go_to_the_nearest_other_example():
    rng = np.random.default_rng(0)
    x = rng.random((12, 1, 4, 4))
    chain = nearest_chain(x, "chain(flips:1, quarter_turns:2)")
    assert chain.states == 12
    assert chain.is_reversible
    assert chain.rates == (1, 2)
    flips = np.zeros((12, 12))
    for u in range(12):
        for image in (x[u], x[u, :, ::-1], x[u, :, :, ::-1], x[u, :, ::-1, ::-1]):
            distance = ((x - image) ** 2).sum((1, 2, 3))
            distance[u] = np.inf
            flips[u, distance.argmin()] += 0.25
    both = flips + flips.T
    proposal = both / both.sum(1, keepdims=True)
    expected = np.minimum(proposal, proposal.T)
    expected -= np.diag(expected.diagonal())
    expected += np.diag(1 - expected.sum(1))
    np.testing.assert_allclose(chain.matrices[0].toarray(), expected, atol=1e-12)


def test_nearest_chain_draws_by_the_seed_and_refuses_what_it_cannot_use():
    x = np.random.default_rng(0).random((30, 5))
    one = nearest_chain(x, "chain(jitter(0.3):1)", seed=1)
    again = nearest_chain(x, "chain(jitter(0.3):1)", seed=1)
    other = nearest_chain(x, "chain(jitter(0.3):1)", seed=2)
    assert abs(one.A - again.A).max() == 0 < abs(one.A - other.A).max()
    refused("at least 2 examples, but got 1", nearest_chain, x[:1], "chain(jitter(0.3):1)")
    refused("floating-point", nearest_chain, np.ones((4, 2), dtype=int), "chain(jitter(0.3):1)")
    with pytest.raises(ValueError, match="image data"):
        nearest_chain(x, "chain(flips:1)")


def test_bytes_stay_bytes_and_stand_for_pixels():
    x = np.array([[[[0, 10], [200, 255]]]], dtype=np.uint8)
    found = enumerate_orbits(x, "chain(invert:1)")
    assert found.states.dtype == np.uint8
    assert found.states.tolist() == [x[0].tolist(), (255 - x[0]).tolist()]


@pytest.mark.parametrize("spec", ["0.5*flips", "flips | identity", "pixel_shifts | identity"])
def test_orbits_of_mixtures(spec):
    found = enumerate_orbits(np.random.default_rng(0).random((2, 1, 4, 4)), f"chain({spec}:1)")
    assert len(found.states) in (8, 2 * 16, 2 * 9, 2 * 5)
    assert found.chain.stationary().sum() == pytest.approx(1)


def test_a_stream_does_not_hand_out_the_examples_themselves():
    x = torch.rand(3, 1, 4, 4)
    before = x.clone()
    for step in islice(stream(x, "chain(horizontal_flip:1)"), 20):
        step.example.mul_(0)
    assert torch.equal(x, before)
