"""Sums over rows that determine a ridge regression: E[φφᵀ], E[ψyᵀ], E‖y‖²."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

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


class RawSums(NamedTuple):
    """Sums over some of the examples, which add: what `Sums` are the means of."""

    cross: Tensor
    gram: Tensor
    power: Tensor
    psi: Tensor
    y: Tensor
    penalty: Tensor

    def add_(self, other: RawSums) -> RawSums:
        """Return the sums over both; those of this one are used up."""
        self.cross.add_(other.cross)
        self.gram.add_(other.gram)
        self.power.add_(other.power)
        rest = (torch.cat(pair) for pair in zip(self[3:], other[3:], strict=True))
        return RawSums(*self[:3], *rest)


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
    raw = collect(batches, gram=gram, dtype=dtype, seed=seed)
    return finish(raw, len(batches), batches.y.shape[1])


def collect(
    batches: Batches,
    *,
    gram: bool,
    dtype: torch.dtype | None = None,
    seed: int = 0,
    start: int = 0,
    total: int | None = None,
    into: RawSums | None = None,
) -> RawSums:
    """Sum over some of the examples, which begin with number `start` of `total`."""
    step = -(-(total or len(batches)) // _SAMPLE)
    like = torch.empty(0, dtype=dtype or batches.dtype, device=batches.device)
    probes = probes_for(batches.y.shape[1])
    if into is None:
        targets, side = batches.y.shape[1], batches.d if gram else 0
        shapes = [(batches.d, targets + probes), (side, side), (), (0, batches.d), (0, targets)]
        cross, matrix, power, psi, y = (like.new_zeros(shape) for shape in shapes)
        into = RawSums(cross, matrix, power.double(), psi, y, psi)
    kept, rows_kept, penalty = [into.psi], [into.y], [into.penalty]
    for block in batches:
        mean = block.orbit.mean.flatten(1).to(like)
        targets, b = block.y.to(mean), len(mean)
        signs = _signs(seed, start, b, probes, mean.device).to(mean)
        first, start = start, start + b
        into.cross.addmm_(mean.mT, torch.cat([targets, signs], 1))
        into.power.add_(targets.double().square().sum())
        if block.penalty is not None:
            penalty.append(block.penalty.to(mean))
        elif batches.n > 1:
            chosen = slice(-first % step, None, step)  # by number, whatever the blocks are
            kept.append(mean[chosen].clone())
            rows_kept.append(targets[chosen])
        if gram:
            for rows, weights in block.rows():
                rows = rows.to(like.dtype)
                scaled = rows if weights is None else rows * weights.to(rows)
                _add_lower(into.gram, rows, scaled)
    rest = (torch.cat(parts) for parts in (kept, rows_kept, penalty))
    return RawSums(into.cross, into.gram, into.power, *rest)


def finish(raw: RawSums, count: int, targets: int) -> Sums:
    """Turn sums over all examples into means; the sums are used up."""
    gram = None
    if len(raw.gram):
        _mirror(raw.gram)
        gram = raw.gram.div_(count)
    sample = (raw.psi, raw.y) if len(raw.psi) else None
    random, cross = raw.cross[:, targets:] / math.sqrt(count), raw.cross[:, :targets] / count
    rows = raw.penalty / math.sqrt(count) if len(raw.penalty) else None
    return Sums(cross, float(raw.power) / count, count, gram, random, sample, rows)


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
