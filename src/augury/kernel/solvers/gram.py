"""Sums over rows that determine a ridge regression: E[φφᵀ], E[ψyᵀ], E‖y‖²."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.kernel.solvers.batches import Batches

_BLOCK = 2048  # columns of the Gram matrix computed together
_LEAST_PROBES, _LANE = 4, 16
_SAMPLE = 512  # examples whose averaged features are kept aside


@dataclass(frozen=True)
class Sums:
    """What the data says about a quadratic loss.

    Attributes
    ----------
    cross
        E[ψyᵀ], ``(d, C)``.
    power
        E‖y‖².
    count
        The number of examples.
    gram
        E[φφᵀ] and the penalty, ``(d, d)``, where it was asked for.
    probes
        ``(d, p)``, with E[zzᵀ] = E[ψψᵀ] for each column z: averaged features with random signs.
    sample
        ψ and y of some examples, ``(m, d)`` and ``(m, C)``, where φ is many views: what an
        estimate of risk looks at.
    penalty
        Rows p of the penalty, over √N, where there are any: ``(m, d)``.
    """

    cross: Tensor
    power: float
    count: int
    gram: Tensor | None
    probes: Tensor
    sample: tuple[Tensor, Tensor] | None
    penalty: Tensor | None


def probes_for(targets: int) -> int:
    """Return how many probes go with so many targets: columns of 16 cost a processor least."""
    return _LEAST_PROBES + -(targets + _LEAST_PROBES) % _LANE


def accumulate(
    batches: Batches, *, gram: bool, dtype: torch.dtype | None = None, seed: int = 0
) -> Sums:
    """Sum over all views of all examples, in one pass.

    Parameters
    ----------
    batches
        Orbits and targets ``(b, C)``.
    gram
        Whether to form E[φφᵀ]: O(N n d²) time, its lower half computed and mirrored, and O(d²)
        memory.
    dtype
        Of the sums; by default the features' own.
    seed
        Of the probes' signs.
    """
    total: Tensor | None = None
    cross: Tensor | None = None
    power, done = 0.0, 0
    kept: list[tuple[Tensor, Tensor]] = []
    penalty: list[Tensor] = []
    step = -(-len(batches) // _SAMPLE)
    for block in batches:
        mean = block.orbit.mean.flatten(1).to(dtype or batches.dtype)
        targets, b = block.y.to(mean), len(mean)
        probes = probes_for(targets.shape[1])
        signs = _signs(seed, done, b, probes, mean.device).to(mean)
        done += b
        if cross is None:
            cross = mean.new_zeros(batches.d, targets.shape[1] + probes)
            total = mean.new_zeros(batches.d, batches.d) if gram else None
        cross.addmm_(mean.mT, torch.cat([targets, signs], 1))
        power += float(targets.double().square().sum())
        if block.penalty is not None:
            penalty.append(block.penalty.to(mean))
        elif batches.n > 1:
            kept.append((mean[::step].clone(), targets[::step]))
        if total is not None:
            for rows, weights in block.rows():
                rows = rows.to(total.dtype)
                scaled = rows if weights is None else rows * weights.to(rows)
                _add_lower(total, rows, scaled)
    assert cross is not None
    count = len(batches)
    if total is not None:
        _mirror(total)
        total /= count
    sample = tuple(torch.cat(part) for part in zip(*kept, strict=True)) if kept else None
    targets = batches.y.shape[1]
    random, cross = cross[:, targets:] / math.sqrt(count), cross[:, :targets] / count
    rows = torch.cat(penalty) / math.sqrt(count) if penalty else None
    return Sums(cross, power / count, count, total, random, sample, rows)  # type: ignore[arg-type]  # a pair


def _signs(seed: int, start: int, count: int, probes: int, device: torch.device) -> Tensor:
    """Return a random sign for each example and probe, the same on any device: ``(b, p)``."""
    index = torch.arange(start, start + count, device=device)
    return 2.0 * Rng(seed, index).integers(probes, 2).mT - 1


def _add_lower(total: Tensor, rows: Tensor, scaled: Tensor) -> None:
    """Add rowsᵀ scaled on and under the diagonal, block by block: half of the operations."""
    for start in range(0, len(total), _BLOCK):
        stop = min(start + _BLOCK, len(total))
        total[start:, start:stop].addmm_(rows[:, start:].mT, scaled[:, start:stop])


def _mirror(total: Tensor) -> None:
    for start in range(0, len(total), _BLOCK):
        stop = min(start + _BLOCK, len(total))
        total[start:stop, stop:] = total[stop:, start:stop].mT
