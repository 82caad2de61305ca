"""Section 3 on the page: the vote, the measurements and the verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from augury_paper import QUICK, chain
from augury_paper.cells import Bench
from augury_paper.images import Library

TINY = replace(QUICK, trials=2, examples=80, tests=40)


def _bench(tmp_path) -> Bench:
    return Bench(torch.device("cpu"), Library(tmp_path, TINY).images, lambda share, words: None)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_vote_is_that_of_the_k_nearest_visits(rows: int, near: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, near)  # states of one class each
    counts = np.zeros((near, 3), dtype=np.int64)
    counts[np.arange(near), labels] = rng.integers(1, 5, near)
    found = np.stack([rng.permutation(near) for _ in range(rows)])
    said = chain._vote(counts, found, k, rng)
    for row, states in zip(said, found, strict=True):
        visits = np.repeat(labels[states], counts.sum(1)[states])[:k]  # nearest first
        assert row == np.bincount(visits, minlength=3).argmax()


def test_random_visits_of_a_shared_state_vote() -> None:
    counts = np.array([[600, 400], [0, 1000]])
    found, rng = np.tile([0, 1], (4000, 1)), np.random.default_rng(0)
    assert (chain._vote(counts, found, 1000, rng) == 0).all()  # all of the nearest state's visits
    assert abs((chain._vote(counts, found, 1, rng) == 0).mean() - 0.6) < 0.03
    few = (chain._vote(counts, found, 5, rng) == 0).mean()
    assert abs(few - 0.683) < 0.03  # three or more of five, each with probability 0.6


def test_visits_carry_the_class_of_their_restart(tmp_path) -> None:
    """By the stationary law: the share of each state and class that a long walk should visit."""
    rule = chain.NeighbourRule.of(
        *chain._orbits(_bench(tmp_path), 20, coarse=True), torch.device("cpu")
    )
    assert rule.shared
    counts = rule._visits(200_000, 0)
    assert counts.sum() == 200_000
    largest = rule.law > 0.002
    assert largest.sum() > 20
    np.testing.assert_allclose(counts[largest] / 200_000, rule.law[largest], rtol=0.25)
    assert np.abs(counts / 200_000 - rule.law).sum() < 0.1


def test_theory_holds_on_a_small_chain(tmp_path) -> None:
    cells = {cell.name: cell for cell in chain.cells(TINY)}
    found = cells["theory"].run(_bench(tmp_path))
    section = chain.section({"theory": found}, TINY)
    assert [claim.verdict for claim in section.claims] == ["could not be checked"] + ["holds"] * 3


def test_a_broken_promise_is_seen() -> None:
    good = {
        "states": 10, "beta": 9.0, "stationary_error": 1e-12, "steps": [0, 5], "asymmetry": 1e-12,
        "variation": [0.9, 0.5], "bound": [1.0, 0.59], "least_eigenvalue": 0.1, "least_entry": 0.0,
    }  # fmt: skip
    for place, worse in (
        (1, {"stationary_error": 1e-3}),
        (2, {"asymmetry": 0.1}),
        (2, {"least_eigenvalue": -0.1}),
        (2, {"least_entry": -0.1}),
        (3, {"variation": [0.9, 0.6]}),
    ):
        claims = chain.section({"theory": {**good, **worse}}, TINY).claims
        assert [c.verdict for c in claims[1:]].count("does not hold") == 1
        assert claims[place].verdict == "does not hold"


def test_more_steps_agree_more(tmp_path) -> None:
    cells = {cell.name: cell for cell in chain.cells(TINY)}
    bench = _bench(tmp_path)
    few, many = (cells[f"steps-{n}"].run(bench) for n in (1_000, 100_000))
    assert np.mean(few["one"]) < np.mean(many["one"])
    assert len(few["one"]) == TINY.trials
    assert cells["steps-1000"].run(bench) == few


def test_the_limit_is_judged_by_its_rule() -> None:
    def verdict(*agreements: float) -> str:
        steps = (1_000, 10_000, 100_000)
        rows = {
            f"steps-{n}": {"k": 3, "one": [a, a], "many": [a, a], "kernel_accuracy": 1.0}
            for n, a in zip(steps, agreements, strict=False)
        }
        assert chain.section(rows, TINY).claims[0].verdict == "could not be checked"
        shared = {"states": 20, "two_classes": 7}
        good = {"k": 3, "one": [1.0], **shared}
        rising = {n: good | {"many": [a]} for n, a in zip(steps, (0.5, 0.9, 1.0), strict=True)}
        alone = rows | {f"coarse-{n}": rising[n] for n in steps}
        mirrored = {f"coarse-{n}": good | rows[f"steps-{n}"] for n in steps if f"steps-{n}" in rows}
        mirrored |= {f"steps-{n}": rising[n] for n in steps}
        first, second = (chain.section(r, TINY).claims[0].verdict for r in (alone, mirrored))
        assert first == second  # the worse of the two counts
        return first

    assert verdict(0.5, 0.9, 0.995) == "holds"
    assert verdict(0.5, 0.9, 0.95) == "holds weaker"
    assert verdict(0.9, 0.8, 0.995) == "does not hold"
    assert verdict(0.9, 1.0, 1.0) == "holds"
    assert verdict(0.5, 0.9) == "could not be checked"
