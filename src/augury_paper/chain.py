"""Section 3: neighbours among augmented examples come to say what the kernel says.

Handwritten digits of 8 × 8 pixels are augmented by one-pixel shifts and quarter turns, so their
orbits can be enumerated and the stationary law solved for. Held-out digits are classified by the
kernel, and by k-nearest neighbours among the examples that N steps of the process visit, with one
neighbour and with a k that grows as the theorem asks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augury.markov import enumerate_orbits, walk
from augury.markov.chain import FiniteChain
from augury.markov.orbits import Orbits
from augury_paper.cells import Bench, Cell
from augury_paper.claims import graded, mean_and_spread, spread, unchecked
from augury_paper.errata import differences
from augury_paper.section import Claim, Plot, Section, Series
from augury_paper.settings import Settings

CHAIN = "chain(pixel_shifts:8, quarter_turns:1)"
_EXAMPLES = 500
_STEPS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_LAW_AFTER = (0, 5, 10, 20, 40, 80)
_BLOCK = 60  # states of one orbit whose kernel is looked at
_AGREED = 0.99


def cells(settings: Settings) -> list[Cell]:
    """List the pieces: the theory's own promises, and a number of steps each."""
    size = min(_EXAMPLES, settings.examples // 4 or _EXAMPLES)
    shared = {"chain": CHAIN, "examples": settings.examples, "tests": settings.tests, "size": size}
    found = [Cell("chain", "theory", "digits", shared, partial(_theory, size=size))]
    for steps in _steps(settings):
        setting = {**shared, "steps": steps, "walks": settings.trials}
        run = partial(_agreement, size=size, steps=steps, walks=settings.trials)
        found.append(Cell("chain", f"steps-{steps}", "digits", setting, run))
    return found


def _steps(settings: Settings) -> tuple[int, ...]:
    return _STEPS[:-2] if settings.examples else _STEPS


def _orbits(bench: Bench, size: int) -> tuple[Orbits, np.ndarray, np.ndarray]:
    """Enumerate the orbits of some digits; with their labels and the digits held out."""
    images = bench.images("digits")
    train = images.train.subsample(size, 0)
    held = images.test.x.flatten(1).numpy()
    return enumerate_orbits(train.x.double(), CHAIN), train.y.numpy(), held


def _theory(bench: Bench, size: int) -> dict[str, Any]:
    """Check Lemma 1, the mixing rate and that K is a kernel, on the enumerated chain."""
    orbits, _, _ = _orbits(bench, size)
    chain: FiniteChain = orbits.chain
    bench.tick(0.3, "the stationary law")
    law = chain.stationary()
    moved = (chain.step(law) + chain.rho) / (1 + chain.beta)
    start = np.zeros(chain.states)
    start[0] = 1.0
    reached, at, variation = start, 0, []
    for n in _LAW_AFTER:
        reached, at = chain.distribution(n - at, reached), n
        variation.append(float(np.abs(reached - law).sum() / 2))
    bench.tick(0.6, "the kernel")
    kernel = chain.kernel()
    orbit = np.flatnonzero(kernel.columns([0])[:, 0])  # elsewhere K has blocks of zeros alone
    chosen = orbit[:: max(1, len(orbit) // _BLOCK)][:_BLOCK]
    columns = kernel.columns(chosen)
    block = columns[chosen]
    scaled = block / block.diagonal().max()
    return {
        "states": chain.states,
        "beta": chain.beta,
        "stationary_error": float(np.abs(moved - law).sum()),
        "steps": list(_LAW_AFTER),
        "variation": variation,
        "bound": [chain.mixing_bound(n) for n in _LAW_AFTER],
        "asymmetry": float(np.abs(scaled - scaled.T).max()),
        "least_eigenvalue": float(np.linalg.eigvalsh((scaled + scaled.T) / 2).min()),
        "least_entry": float(columns.min() / block.diagonal().max()),
    }


def _agreement(bench: Bench, size: int, steps: int, walks: int) -> dict[str, Any]:
    """Classify held-out digits by neighbours among N steps, for each walk, and by the kernel."""
    rule = Rule.of(*_orbits(bench, size), bench.device)
    one, many = [], []
    for seed in range(walks):
        bench.tick(seed / walks, f"walk {seed + 1}")
        shares = rule.agreement(steps, seed)
        one.append(shares[0])
        many.append(shares[1])
    truth = bench.images("digits").test.y.numpy()
    accuracy = float((rule.said == truth).mean())
    return {
        "k": neighbours(steps),
        "one": one,
        "many": many,
        "kernel_accuracy": accuracy,
        "held": len(truth),
    }


def neighbours(steps: int) -> int:
    """Give a number of neighbours that grows with the steps, as the theorem asks: ⌈N^¼⌉."""
    return math.ceil(steps**0.25)


@dataclass(frozen=True)
class Rule:
    """The kernel classifier, which is the Bayes rule on the stationary law.

    Attributes
    ----------
    chain, law
        Its states' share of the stationary law, by class: ``(states, C)``.
    apart
        Distances of held-out examples from all states: ``(examples, states)``.
    """

    chain: FiniteChain
    law: np.ndarray
    apart: Tensor

    @classmethod
    def of(cls, orbits: Orbits, y: np.ndarray, held: np.ndarray, device: torch.device) -> Rule:
        """Solve for the law of enumerated orbits with these labels."""
        restart = np.zeros((orbits.chain.states, int(y.max()) + 1))
        np.add.at(restart, (orbits.examples, y), 1 / len(y))
        # exact, not by products: many states are equally near, and rounding must not choose
        apart = torch.cdist(
            torch.from_numpy(held).to(device, torch.float64),
            torch.from_numpy(orbits.states).flatten(1).to(device, torch.float64),
            compute_mode="donot_use_mm_for_euclid_dist",
        )
        return cls(orbits.chain, orbits.chain.solve(restart).x, apart)

    @cached_property
    def nearest(self) -> np.ndarray:
        """The state nearest to each held-out example."""
        return self.apart.argmin(1).cpu().numpy()

    @cached_property
    def said(self) -> np.ndarray:
        """The class of each held-out example."""
        return self.law.argmax(1)[self.nearest]

    def agreement(self, steps: int, seed: int) -> tuple[float, float]:
        """Give the share on which neighbours among a walk's steps agree: one, and `neighbours`."""
        k, label = neighbours(steps), self.law.argmax(1)
        counts = np.bincount(walk(self.chain, steps, seed), minlength=self.chain.states)
        seen = torch.from_numpy(counts > 0).to(self.apart.device)
        near = self.apart.masked_fill(~seen, math.inf).topk(min(k, int(seen.sum())), largest=False)
        found = near.indices.cpu().numpy()
        votes = _vote(label[found], counts[found], k, self.law.shape[1])
        return float((label[found[:, 0]] == self.said).mean()), float((votes == self.said).mean())


def _vote(labels: np.ndarray, weights: np.ndarray, k: int, classes: int) -> np.ndarray:
    """Let the nearest states vote in turn, each as often as it was visited, until k have."""
    before = np.cumsum(weights, axis=1) - weights
    taken = np.clip(k - before, 0, weights)
    votes = torch.zeros(len(labels), classes, dtype=torch.float64)
    votes.scatter_add_(1, torch.from_numpy(labels), torch.from_numpy(taken.astype(np.float64)))
    return votes.argmax(1).numpy()


def section(results: dict[str, dict[str, Any]], settings: Settings) -> Section:
    """Say what came of it."""
    steps = [n for n in _steps(settings) if f"steps-{n}" in results]
    rows = [results[f"steps-{n}"] for n in steps]
    claims = [_limit(steps, rows, settings), *_promises(results.get("theory"))]
    plots = []
    if rows:
        plots.append(
            Plot(
                "Agreement of k-NN with the kernel",
                "steps of the process",
                "agreement, %",
                tuple(
                    Series(
                        label,
                        tuple(float(k) for k in range(len(rows))),
                        tuple(100 * float(np.mean(row[key])) for row in rows),
                        tuple(100 * float(spread(row[key])) for row in rows),
                    )
                    for label, key in (("k = 1", "one"), ("k grows as N^¼", "many"))
                ),
                ticks=tuple(f"{n:,}" for n in steps),
            )
        )
    if theory := results.get("theory"):
        kept = [
            (n, v, b)
            for n, v, b in zip(theory["steps"], theory["variation"], theory["bound"], strict=True)
        ]
        x, law, bound = (tuple(float(v) for v in column) for column in zip(*kept, strict=True))
        plots.append(
            Plot(
                "Law after n steps from one state",
                "steps",
                "total variation from π",
                (Series("measured", x, law), Series("bound (β/(β+1))^n", x, bound)),
                log=True,
            )
        )
    return Section(
        "chain",
        "A chain of augmentations gives a kernel (Section 3)",
        f"Digits of 8 × 8 pixels under {CHAIN}: all versions are enumerated, and the kernel "
        "classifier, which is the Bayes rule on the stationary law, is compared with nearest "
        "neighbours among what the process visits. The paper proves these and shows no numbers.",
        tuple(claims),
        plots=tuple(plots),
        differences=differences("chain"),
    )


def _limit(steps: list[int], rows: list[dict[str, Any]], settings: Settings) -> Claim:
    words = (
        "Theorem 1: as the process runs on and k grows, k-nearest neighbours on augmented "
        "examples say what a kernel classifier says"
    )
    paper = "all, in the limit"
    if len(rows) < len(_steps(settings)):
        return unchecked(words, paper)
    last = [100 * value for value in rows[-1]["many"]]
    means = [float(np.mean(row["many"])) for row in rows]
    rising = all(b >= a for a, b in pairwise(means))
    verdict = graded(means[-1], _AGREED, means[0]) if rising else "does not hold"
    ours = f"{mean_and_spread(last)} % after {steps[-1]:,} steps (k = {rows[-1]['k']})"
    return Claim(words, paper, f"{ours}; {100 * means[0]:.1f} % after {steps[0]:,}", verdict)


def _promises(theory: dict[str, Any] | None) -> list[Claim]:
    said = (
        ("Lemma 1: π = ρᵀ((β+1)I − A)⁻¹ is the law of the process in the long run", "equal"),
        ("K is symmetric, positive definite and has no negative entry", "a kernel"),
        ("Appendix: the law after n steps nears π at the rate (β/(β+1))^n", "within the bound"),
    )
    if theory is None:
        return [unchecked(words, paper) for words, paper in said]
    within = all(
        value <= bound + 1e-9
        for value, bound in zip(theory["variation"], theory["bound"], strict=True)
    )
    proper = (
        theory["asymmetry"] < 1e-8
        and theory["least_eigenvalue"] > 0
        and theory["least_entry"] > -1e-9
    )
    ours = (
        f"πR = π to {theory['stationary_error']:.0e} on {theory['states']:,} states",
        f"asymmetry {theory['asymmetry']:.0e}, least eigenvalue "
        f"{theory['least_eigenvalue']:.2g} of the largest entry, in states of one orbit",
        f"{theory['variation'][-1]:.1e} after {theory['steps'][-1]} steps, bound "
        f"{theory['bound'][-1]:.1e} (in total variation)",
    )
    holds = (theory["stationary_error"] < 1e-8, proper, within)
    return [
        Claim(words, paper, found, "holds" if good else "does not hold")
        for (words, paper), found, good in zip(said, ours, holds, strict=True)
    ]
