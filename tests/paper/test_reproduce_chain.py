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
    labels = rng.integers(0, 3, (rows, near))
    weights = rng.integers(1, 5, (rows, near))
    found = chain._vote(labels, weights, k, 3)
    for row in range(rows):
        visits = np.repeat(labels[row], weights[row])[:k]  # nearest first, one entry a visit
        assert found[row] == np.bincount(visits, minlength=3).argmax()


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
        return chain.section(rows, TINY).claims[0].verdict

    assert verdict(0.5, 0.9, 0.995) == "holds"
    assert verdict(0.5, 0.9, 0.95) == "holds weaker"
    assert verdict(0.9, 0.8, 0.995) == "does not hold"
    assert verdict(0.9, 1.0, 1.0) == "holds"
    assert verdict(0.5, 0.9) == "could not be checked"
