"""Sums over rows that determine a ridge regression: E[φφᵀ], E[ψyᵀ], E‖y‖²."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from augury.solvers.batches import Batches

_BLOCK = 2048  # columns of the Gram matrix computed together


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
    """

    cross: Tensor
    power: float
    count: int
    gram: Tensor | None


def accumulate(batches: Batches, *, gram: bool, dtype: torch.dtype | None = None) -> Sums:
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
    """
    total: Tensor | None = None
    cross: Tensor | None = None
    power = 0.0
    for rows, weights, y in batches.rows():
        kind = dtype or rows.dtype
        rows = rows.to(kind)
        d, b = rows.shape[1], len(y)
        targets = y.to(rows)
        mean = rows if weights is None else _average(rows, weights, b)
        if cross is None:
            cross = rows.new_zeros(d, targets.shape[1])
            total = rows.new_zeros(d, d) if gram else None
        cross.addmm_(mean.mT, targets)
        power += float(targets.double().square().sum())
        if total is not None:
            scaled = rows if weights is None else rows * weights.to(rows).unsqueeze(1)
            _add_lower(total, rows, scaled)
    assert cross is not None
    count = len(batches)
    if total is not None:
        _mirror(total)
        total /= count
    return Sums(cross / count, power / count, count, total)


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
