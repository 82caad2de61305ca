"""Exact draws, long walks and the stream of examples."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import torch
from reference_chain import random_stochastic, stationary, total_variation
from refusal import refused
from scipy.stats import chisquare, combine_pvalues

from augury.augmentations import parse
from augury.markov import FiniteChain, sample, stream, walk


def fifty_states():
    rng = np.random.default_rng(0)
    matrices = [random_stochastic(rng, 50), random_stochastic(rng, 50)]
    return FiniteChain(matrices, [2, 1], rng.random(50)), matrices


def test_exact_draws_pass_a_chi_square_test_at_every_start():
    chain, matrices = fifty_states()
    found = []
    for start in range(50):
        law = stationary(matrices, [2, 1], np.eye(50)[start])
        drawn = sample(chain, np.full(100_000, start), seed=start)
        likely = law * 100_000 >= 5  # a chi-square test needs a few expected in each cell
        counts = np.bincount(drawn, minlength=50)
        observed = np.append(counts[likely], counts[~likely].sum())
        expected = np.append(law[likely], law[~likely].sum()) * 100_000
        cells = expected > 0
        found.append(chisquare(observed[cells], expected[cells]).pvalue)
    assert min(found) * 50 > 1e-2  # the least of fifty
    assert combine_pvalues(found).pvalue > 1e-2  # and all together


def test_draws_round_examples_drawn_by_rho_follow_pi():
    chain, _ = fifty_states()
    starts = np.random.default_rng(1).choice(50, 100_000, p=chain.rho)
    counts = np.bincount(sample(chain, starts, 2), minlength=50)
    assert chisquare(counts, chain.stationary(tol=1e-13) * 100_000).pvalue > 1e-3


def test_the_same_seed_gives_the_same_draws():
    chain, _ = fifty_states()
    starts = np.arange(50)
    np.testing.assert_array_equal(sample(chain, starts, 5), sample(chain, starts, 5))
    assert (sample(chain, starts, 5) != sample(chain, starts, 6)).any()
    np.testing.assert_array_equal(walk(chain, 1000, 5), walk(chain, 1000, 5))


def test_a_walk_is_the_process():
    chain, matrices = fifty_states()
    r = chain.R @ np.eye(50)
    visited = walk(chain, 400_000, 0)
    assert visited.shape == (400_000,)
    moves = np.zeros((50, 50))
    np.add.at(moves, (visited[:-1], visited[1:]), 1)
    for start in range(50):
        expected = r[start] * moves[start].sum()
        assert chisquare(moves[start], expected).pvalue > 1e-6
    pi = stationary(matrices, [2, 1], chain.rho)
    errors = [
        total_variation(np.bincount(visited[:n], minlength=50) / n, pi)
        for n in (1_000, 10_000, 100_000)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert walk(chain, 1, 0, start=7).tolist() == [7]


def test_the_stream_moves_and_restarts_by_the_rates():
    x = torch.rand(3, 1, 8, 8)
    chain = parse("chain(flips:2, quarter_turns:1)")
    steps = list(islice(stream(x, chain, restart=[1, 0, 3], seed=2), 4000))
    assert steps[0].part is None
    moves = [0, 0, 0]
    for before, now in pairwise(steps):
        moves[2 if now.part is None else now.part] += 1
        if now.part is None:
            assert torch.equal(now.example, x[now.source])
        else:
            assert now.source == before.source
            family = [chain.parts[now.part].maps(before.example)]
            assert any(torch.equal(now.example, view) for view in family[0])
    assert chisquare(moves, 3999 * np.array([0.5, 0.25, 0.25])).pvalue > 1e-3
    sources = np.bincount([s.source for s in steps if s.part is None], minlength=3)
    assert sources[1] == 0
    assert chisquare(sources[[0, 2]], sources.sum() * np.array([0.25, 0.75])).pvalue > 1e-3
    again = list(islice(stream(x, chain, restart=[1, 0, 3], seed=2), 50))
    assert all(torch.equal(a.example, b.example) for a, b in zip(steps, again, strict=False))


def test_bad_starts_are_refused():
    chain, _ = fifty_states()
    refused("states from 0 to 49", sample, chain, [50], 0)
    refused("steps must be a whole number of 1 or more, got 0", walk, chain, 0, 0)
