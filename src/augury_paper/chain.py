"""Section 3: nearest neighbours among augmented examples approach the kernel classifier.

Handwritten digits of 8 × 8 pixels are augmented by one-pixel shifts and quarter turns, so their
orbits can be enumerated and the stationary law solved for. Held-out digits are classified by the
kernel, and by k-nearest neighbours among the examples that N steps of the process visit, with one
neighbour and with a k that grows as the theorem asks.

These orbits do not meet, so every state has one class and neighbours can only be wrong where the
nearest state was not visited. The same is therefore done for digits reduced to 4 × 4 black or white
pixels, where digits of different classes share states, whose visits carry the label of the digit
that the process last restarted from, and the vote has to find the more likely class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from augury.markov import enumerate_orbits, walk
from augury.markov.chain import FiniteChain
from augury.markov.orbits import Orbits
from augury_paper.cells import Bench, Cell
from augury_paper.claims import graded, mean_and_spread, spread, standard_error, unchecked
from augury_paper.errata import differences
from augury_paper.section import Claim, Plot, Section, Series, Verdict
from augury_paper.settings import Settings

CHAIN = "chain(pixel_shifts:8, quarter_turns:1)"
_EXAMPLES = 500
_STEPS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_LAW_AFTER = (0, 5, 10, 20, 40, 80)
_BLOCK = 60  # states of one orbit whose kernel is looked at
_AGREED = 0.99


def cells(settings: Settings) -> list[Cell]:
    """List the parts: the theory's own promises, and a number of steps each."""
    size = min(_EXAMPLES, settings.examples // 4 or _EXAMPLES)
    shared = {"chain": CHAIN, "examples": settings.examples, "tests": settings.tests, "size": size}
    found = [Cell("chain", "theory", "digits", shared, partial(_theory, size=size))]
    for coarse in (False, True):
        for steps in _steps(settings):
            setting = {**shared, "steps": steps, "walks": settings.trials}
            setting |= {"coarse": True} if coarse else {}
            run = partial(_agreement, size=size, steps=steps, walks=settings.trials, coarse=coarse)
            found.append(Cell("chain", f"{_name(coarse)}-{steps}", "digits", setting, run))
    return found


def _name(coarse: bool) -> str:
    return "coarse" if coarse else "steps"


def _steps(settings: Settings) -> tuple[int, ...]:
    return _STEPS[:-2] if settings.small else _STEPS


def _orbits(bench: Bench, size: int, coarse: bool = False) -> tuple[Orbits, np.ndarray, np.ndarray]:
    """Enumerate the orbits of some digits; with their labels and the digits held out."""
    images = bench.images("digits")
    train = images.train.subsample(size, 0)
    x, held = train.x.double(), images.test.x.double()
    if coarse:
        x, held = _black_or_white(x), _black_or_white(held)
    return enumerate_orbits(x, CHAIN), train.y.numpy(), held.flatten(1).numpy()


def _black_or_white(x: Tensor) -> Tensor:
    """Reduce images to half their side, and pixels to above or below the mean of all."""
    small = torch.nn.functional.avg_pool2d(x, 2)
    return (small > small.mean()).to(x)


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


def _agreement(bench: Bench, size: int, steps: int, walks: int, coarse: bool) -> dict[str, Any]:
    """Classify held-out digits by neighbours among N steps, for each walk, and by the kernel."""
    rule = NeighbourRule.of(*_orbits(bench, size, coarse), bench.device)
    one, many = [], []
    for seed in range(walks):
        bench.tick(seed / walks, f"walk {seed + 1}")
        shares = rule.agreement(steps, seed)
        one.append(shares[0])
        many.append(shares[1])
    truth = bench.images("digits").test.y.numpy()
    accuracy = float((rule.said == truth).mean())
    return {
        "k": neighbours(steps, rule.shared),
        "one": one,
        "many": many,
        "kernel_accuracy": accuracy,
        "held": len(truth),
        "states": rule.chain.states,
        "two_classes": int(((rule.law > 0).sum(1) > 1).sum()),
        "held_at_two_classes": int(((rule.law > 0).sum(1) > 1)[rule.nearest].sum()),
    }


def neighbours(steps: int, shared: bool = False) -> int:
    """Return a number of neighbours that grows with the steps, and slower, as the theorem asks.

    It is ⌈N^¼⌉ where states have one class. Where classes share states it is ⌈√N⌉, since the vote
    has to tell classes apart that are almost equally likely.
    """
    return math.ceil(steps ** (0.5 if shared else 0.25))


@dataclass(frozen=True)
class NeighbourRule:
    """The kernel classifier, which is the Bayes rule on the stationary law.

    Attributes
    ----------
    chain, restart, law
        Its states' shares of the restarts and of the stationary law, by class: ``(states, C)``.
    apart
        Distances of held-out examples from all states: ``(examples, states)``.
    """

    chain: FiniteChain
    restart: np.ndarray
    law: np.ndarray
    apart: Tensor

    @classmethod
    def of(
        cls, orbits: Orbits, y: np.ndarray, held: np.ndarray, device: torch.device
    ) -> NeighbourRule:
        """Solve for the law of enumerated orbits with these labels."""
        restart = np.zeros((orbits.chain.states, int(y.max()) + 1))
        np.add.at(restart, (orbits.examples, y), 1 / len(y))
        # exact, not by products: many states are equally near, and rounding must not choose
        apart = torch.cdist(
            torch.from_numpy(held).to(device, torch.float64),
            torch.from_numpy(orbits.states).flatten(1).to(device, torch.float64),
            compute_mode="donot_use_mm_for_euclid_dist",
        )
        return cls(orbits.chain, restart, orbits.chain.solve(restart).x, apart)

    @cached_property
    def shared(self) -> bool:
        """Whether some states have more than one class."""
        return bool(((self.law > 0).sum(1) > 1).any())

    @cached_property
    def nearest(self) -> np.ndarray:
        """The state nearest to each held-out example."""
        return self.apart.argmin(1).cpu().numpy()

    @cached_property
    def said(self) -> np.ndarray:
        """The class of each held-out example."""
        return self.law.argmax(1)[self.nearest]

    def agreement(self, steps: int, seed: int) -> tuple[float, float]:
        """Return the share on which a walk's neighbours agree: one neighbour, and `neighbours`."""
        k, rng = neighbours(steps, self.shared), np.random.default_rng([seed, steps])
        counts = self._visits(steps, seed)
        total = counts.sum(1)
        seen = torch.from_numpy(total > 0).to(self.apart.device)
        near = self.apart.masked_fill(~seen, math.inf).topk(min(k, int(seen.sum())), largest=False)
        found = near.indices.cpu().numpy()
        shares = [float((_vote(counts, found, most, rng) == self.said).mean()) for most in (1, k)]
        return shares[0], shares[1]

    def _visits(self, steps: int, seed: int) -> np.ndarray:
        """Count a walk's visits to each state, by the class of the restart: ``(states, C)``."""
        owner = self.law.argmax(1)
        if not self.shared:
            visited = walk(self.chain, steps, seed)
            counts = np.zeros(self.law.shape, dtype=np.int64)
            np.add.at(counts, (visited, owner[visited]), 1)
            return counts
        classes = self.law.shape[1]
        visited = walk(self._labelled(), steps, seed)
        return np.bincount(visited, minlength=classes * self.chain.states).reshape(classes, -1).T

    def _labelled(self) -> FiniteChain:
        """Return the chain of pairs (class, state): an excursion keeps its first class."""
        matrices = [sp.block_diag([a] * self.law.shape[1], "csr") for a in self.chain.matrices]
        return FiniteChain(matrices, self.chain.rates, self.restart.T.ravel())


def _vote(counts: np.ndarray, found: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Let the nearest states vote in turn, each as often as it was visited, until k have.

    Of a state that was visited more often than votes are left, random visits vote.
    """
    weights = counts.sum(1)[found]
    before = np.cumsum(weights, axis=1) - weights
    taken = np.clip(k - before, 0, weights)
    said = np.empty(len(found), dtype=np.int64)
    for row, (states, votes) in enumerate(zip(found, taken, strict=True)):
        total = np.zeros(counts.shape[1], dtype=np.int64)
        for state, number in zip(states, votes, strict=True):
            if number == 0:
                break
            own = counts[state]
            whole = number == own.sum() or np.count_nonzero(own) == 1
            total += (
                own * number // own.sum() if whole else rng.multivariate_hypergeometric(own, number)
            )
        said[row] = total.argmax()
    return said


def section(results: dict[str, dict[str, Any]], settings: Settings) -> Section:
    """Judge Theorem 1 and the lemmas."""
    claims = [
        _limit(results, settings),
        *_promises(results.get("theory")),
    ]
    plots = [plot for coarse in (False, True) for plot in _approach(results, coarse, settings)]
    if theory := results.get("theory"):
        x, law, bound = (
            tuple(float(v) for v in theory[key]) for key in ("steps", "variation", "bound")
        )
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
        f"For digits of 8 × 8 pixels under {CHAIN}, all views are enumerated, and the kernel "
        "classifier, which is the Bayes rule on the stationary law, is compared with nearest "
        "neighbours among the states that the process visits. The same is done for digits of 4 × 4 "
        "black or white pixels, where classes share states. The paper proves these results and "
        "reports no numbers.",
        tuple(claims),
        plots=tuple(plots),
        differences=differences("chain"),
    )


def _found(
    results: dict[str, dict[str, Any]], coarse: bool, settings: Settings
) -> tuple[list[int], list[dict[str, Any]]]:
    steps = [n for n in _steps(settings) if f"{_name(coarse)}-{n}" in results]
    return steps, [results[f"{_name(coarse)}-{n}"] for n in steps]


def _approach(results: dict[str, dict[str, Any]], coarse: bool, settings: Settings) -> list[Plot]:
    steps, rows = _found(results, coarse, settings)
    if not rows:
        return []
    power = "√N" if coarse else "N^¼"
    series = tuple(
        Series(
            label,
            tuple(float(k) for k in range(len(rows))),
            tuple(100 * float(np.mean(row[key])) for row in rows),
            tuple(100 * float(spread(row[key])) for row in rows),
        )
        for label, key in (("k = 1", "one"), (f"k grows as {power}", "many"))
    )
    title = "Agreement of k-NN with the kernel" + (", classes share states" if coarse else "")
    ticks = tuple(f"{n:,}" for n in steps)
    return [Plot(title, "steps of the process", "agreement, %", series, ticks=ticks)]


def _limit(results: dict[str, dict[str, Any]], settings: Settings) -> Claim:
    """Judge Theorem 1 by both state spaces: the worse verdict counts."""
    words = (
        "Theorem 1: as the process runs on and k grows, k-nearest neighbours on augmented "
        "examples agree with a kernel classifier"
    )
    paper, parts, verdicts = "all, in the limit", [], []
    for coarse in (False, True):
        steps, rows = _found(results, coarse, settings)
        if len(rows) < len(_steps(settings)):
            return unchecked(words, paper)
        means = [float(np.mean(row["many"])) for row in rows]
        # an agreement that is known up to an error may seem to fall by as much
        errors = [standard_error(row["many"]) for row in rows]
        rising = all(
            b >= a - 2 * math.hypot(c, d)
            for (a, b), (c, d) in zip(pairwise(means), pairwise(errors), strict=True)
        )
        verdicts.append(graded(means[-1], _AGREED, means[0]) if rising else "does not hold")
        last = mean_and_spread([100 * value for value in rows[-1]["many"]])
        part = f"{last} % after {steps[-1]:,} steps (k = {rows[-1]['k']:,})"
        part += f", {100 * means[0]:.1f} % after {steps[0]:,}"
        if coarse:
            two, states = rows[-1]["two_classes"], rows[-1]["states"]
            part = f"where {two:,} of {states:,} states have two classes, {part}"
        parts.append(part)
    order = get_args(Verdict)
    return Claim(words, paper, "; ".join(parts), max(verdicts, key=order.index))


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
