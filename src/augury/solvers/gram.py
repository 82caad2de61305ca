"""Sums over rows that determine a ridge regression: E[φφᵀ], E[ψyᵀ], E‖y‖²."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from augury.rng import Rng
from augury.solvers.batches import Batches

_BLOCK = 2048  # columns of the Gram matrix computed together
PROBES = 4  # random columns that measure the effective number of parameters
_SAMPLE = 2048  # examples whose averaged features are kept aside


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
        E[φφᵀ], ``(d, d)``, where it was asked for.
    probes
        ``(d, 4)``, with E[zzᵀ] = E[ψψᵀ] for each column z: averaged features with random signs.
    sample
        ψ and y of some examples, ``(m, d)`` and ``(m, C)``, where there are several versions:
        what an estimate of risk looks at.
    """

    cross: Tensor
    power: float
    count: int
    gram: Tensor | None
    probes: Tensor
    sample: tuple[Tensor, Tensor] | None


def accumulate(
    batches: Batches, *, gram: bool, dtype: torch.dtype | None = None, seed: int = 0
) -> Sums:
    """Sum over all versions of all examples, in one pass.

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
    step = -(-len(batches) // _SAMPLE)
    for rows, weights, y in batches.rows():
        kind = dtype or rows.dtype
        rows = rows.to(kind)
        d, b = rows.shape[1], len(y)
        targets = y.to(rows)
        mean = rows if weights is None else _average(rows, weights, b)
        signs = _signs(seed, done, b).to(rows)
        done += b
        if cross is None:
            cross = rows.new_zeros(d, targets.shape[1] + PROBES)
            total = rows.new_zeros(d, d) if gram else None
        cross.addmm_(mean.mT, torch.cat([targets, signs], 1))
        if weights is not None:
            kept.append((mean[::step].clone(), targets[::step]))
        power += float(targets.double().square().sum())
        if total is not None:
            scaled = rows if weights is None else rows * weights.to(rows).unsqueeze(1)
            _add_lower(total, rows, scaled)
    assert cross is not None
    count = len(batches)
    if total is not None:
        _mirror(total)
        total /= count
    sample = tuple(torch.cat(part) for part in zip(*kept, strict=True)) if kept else None
    probes = cross[:, -PROBES:] / math.sqrt(count)
    cross = cross[:, :-PROBES] / count
    return Sums(cross, power / count, count, total, probes, sample)  # type: ignore[arg-type]


def _signs(seed: int, start: int, count: int) -> Tensor:
    """Give a random sign for each example and probe: ``(b, 4)``."""
    index = torch.arange(start, start + count)
    return 2.0 * Rng(seed, index).integers(PROBES, 2).mT - 1


def _average(rows: Tensor, weights: Tensor, b: int) -> Tensor:
    return (rows * weights.to(rows).unsqueeze(1)).unflatten(0, (-1, b)).sum(0)


def _add_lower(total: Tensor, rows: Tensor, scaled: Tensor) -> None:
    """Add rowsᵀ scaled on and under the diagonal, block by block: half of the operations."""
    for start in range(0, len(total), _BLOCK):
        stop = min(start + _BLOCK, len(total))
        total[start:, start:stop].addmm_(rows[:, start:].mT, scaled[:, start:stop])


def _mirror(total: Tensor) -> None:
    for start in range(0, len(total), _BLOCK):
        stop = min(start + _BLOCK, len(total))
        total[start:stop, stop:] = total[stop:, start:stop].mT
