"""A data set's orbits, block by block, as often as a solver asks; kept where they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from augury.features.orbit import Orbit


class OrbitBlock(NamedTuple):
    """Some examples: their orbit, their targets, and rows p of a penalty Σ‖pᵀw‖², if any."""

    orbit: Orbit
    y: Tensor
    penalty: Tensor | None

    def rows(self) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Return the rows whose squares the quadratic loss sums, and weights where they differ."""
        n, b = self.orbit.features.shape[:2]
        weights = self.orbit.weights.repeat_interleave(b).unsqueeze(1) if n > 1 else None
        yield self.orbit.features.flatten(0, 1).flatten(1), weights
        if self.penalty is not None:
            yield self.penalty, None


class Batches:
    """Orbits and targets in blocks of examples, computed anew on each pass or kept.

    Averaged features are an orbit of one view, so that a solver of the exact objective also
    solves the first-order one.

    Parameters
    ----------
    make
        From the numbers of some examples, in order, to their orbit, and to rows of a penalty or
        None.
    y
        ``(N, ...)``: the targets, where the orbits are.
    size
        Examples a block.
    budget
        Bytes of features to keep; blocks beyond it are computed anew on each pass.
    progress
        Called with (done, total) examples on the first pass.

    Attributes
    ----------
    n, d, dtype, device
        Of the features: views, features, type and place.
    penalised
        Whether there are rows of a penalty.
    kept
        Whether all features are kept, so that another pass is cheap.
    passes
        How often the data has been gone through.
    """

    def __init__(
        self,
        make: Callable[[Tensor], tuple[Orbit, Tensor | None]],
        y: Tensor,
        *,
        size: int,
        budget: float = 0.0,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self.make, self.y, self.size = make, y, size
        self.passes = 0
        self._progress = progress
        self._kept: dict[int, OrbitBlock] = {}
        first = self._make(0, 1)
        features = first.orbit.features
        self.n, self.d = len(features), features.shape[2:].numel()
        self.dtype, self.device = features.dtype, features.device
        self.penalised = first.penalty is not None
        self.kept = _bytes(first) * len(y) <= budget
        self._left = budget

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.y)

    def __iter__(self) -> Iterator[OrbitBlock]:
        for start in range(0, len(self), self.size):
            stop = min(start + self.size, len(self))
            block = self._kept.get(start)
            if block is None:
                block = self._make(start, stop)
                if _bytes(block) <= self._left:
                    self._left -= _bytes(block)
                    self._kept[start] = block
            yield block
            if not self.passes:
                self._progress(stop, len(self))
        self.passes += 1

    def _make(self, start: int, stop: int) -> OrbitBlock:
        orbit, penalty = self.make(torch.arange(start, stop))
        return OrbitBlock(orbit, self.y[start:stop], penalty)


def _bytes(block: OrbitBlock) -> int:
    held = (block.orbit.features, block.orbit.origin, block.penalty)
    return sum(part.nbytes for part in held if part is not None)
