"""How far real training agrees with itself: on other test examples, from other seeds.

A test set is parted (into speakers, or at random), and the accuracy of every seed on every part is
kept in a cell. What one half of the seeds shows on one half of the parts is then a forecast of what
the other seeds show on the other parts. A forecast that has not seen the test examples cannot be
expected to do better.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

PARTS = 4
"""Parts of a test set that has no groups."""
ASKED = 0.75
"""The rank correlation that is asked of forecasts."""
_SPLITS = 60
_TIE = 1e-6  # points: less than one example makes in any set


def part_at_random(y: torch.Tensor) -> torch.Tensor:
    """Deal test examples into `PARTS` parts with about as many examples of each class."""
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    order = order[y[order].argsort(stable=True)]
    parts = torch.empty(len(y), dtype=torch.long)
    parts[order] = torch.arange(len(y)) % PARTS
    return parts


def halves(cell: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of mean accuracies of all candidates, from different seeds and test examples.

    Cells without parts are split by seeds alone.
    """
    specs = [spec for spec in cell["accuracy"] if spec != "identity"]
    tested = cell.get("tested")
    runs = np.array([(tested or cell["accuracy"])[spec] for spec in specs])
    runs = runs if tested else runs[..., None]  # (candidates, seeds, parts)
    pairs = []
    seeds, parts = _split(runs.shape[1]), _split(runs.shape[2]) if tested else [([0], [0])]
    for own, other in itertools.product(seeds, parts):
        for k in range(2):
            first, second = (own[0], other[k]), (own[1], other[1 - k])
            pairs.append(tuple(runs[:, s][:, :, p].mean((1, 2)) for s, p in (first, second)))
    return pairs


def _split(count: int) -> list[tuple[list[int], list[int]]]:
    """Return ways to split so many things into two halves, at most `_SPLITS` of them."""
    every = range(count)
    ways = list(itertools.islice(itertools.combinations(every, count // 2), 5000))
    random = np.random.default_rng(0).permutation(len(ways))[:_SPLITS]
    return [(list(ways[k]), [i for i in every if i not in ways[k]]) for k in random]


def reliability(cell: dict[str, Any]) -> float:
    """Return how well real gains repeat: the rank correlation of halves, stepped up to the whole.

    By Spearman and Brown, the mean of two halves that correlate by r has the reliability
    2r / (1 + r). Ties are broken at random in each half: candidates that are all alike have no
    order to repeat.
    """
    rng = np.random.default_rng(0)
    found = [
        spearmanr(*(half + _TIE * rng.random(len(half)) for half in pair))[0]
        for pair in halves(cell)
    ]
    mean = max(0.0, float(np.mean(found)))
    return 2 * mean / (1 + mean)


def reachable(cell: dict[str, Any]) -> float:
    """Return the rank correlation with real gains that a forecast can be expected to reach.

    The square root of their reliability, for one without an error.
    """
    return float(np.sqrt(reliability(cell)))


def regret(cell: dict[str, Any], chosen: Sequence[int]) -> float:
    """Return by how much the best of the `chosen` candidates falls short of the best of all.

    Both are picked by one half of the seeds and test examples and compared on the other: the best
    of many noisy numbers is too large, so a comparison on the same numbers finds a regret even
    where there is none.
    """
    best = []
    for first, second in halves(cell):
        own = max(chosen, key=lambda k: first[k])
        best.append(second[first.argmax()] - second[own])
    return float(np.mean(best))


def self_forecast(cell: dict[str, Any]) -> tuple[float, float]:
    """Return the rank correlation and regret@3 of real training as a forecast for other examples.

    One part of the test set at a time is used to rank, by all seeds, the others to judge.
    """
    specs = [spec for spec in cell["accuracy"] if spec != "identity"]
    runs = np.array([cell["tested"][spec] for spec in specs]).mean(1)  # (candidates, parts)
    found = []
    for k in range(runs.shape[1]):
        mine, others = runs[:, k], np.delete(runs, k, 1).mean(1)
        top = np.argsort(-mine, kind="stable")[:3]
        found.append((spearmanr(mine, others)[0], others.max() - others[top].max()))
    rho, short = np.mean(found, 0)
    return float(rho), float(short)
