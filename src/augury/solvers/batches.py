"""A data set's orbits, block by block, as often as a solver asks; kept where they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from augury.orbit import Orbit


class Batches:
    """Orbits and targets in blocks of examples, computed anew on each pass or kept.

    Averaged features are an orbit of one version, so that a solver of the exact objective also
    solves the first-order one.

    Parameters
    ----------
    make
        From the numbers of some examples, in order, to their orbit.
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
        Of the features: versions, features, type and place.
    kept
        Whether all features are kept, so that another pass is cheap.
    passes
        How often the data has been gone through.
    """

    def __init__(
        self,
        make: Callable[[Tensor], Orbit],
        y: Tensor,
        *,
        size: int,
        budget: float = 0.0,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self.make, self.y, self.size = make, y, size
        self.passes = 0
        self._progress = progress
        self._kept: dict[int, Orbit] = {}
        first = make(torch.arange(1)).features
        self.n, self.d = len(first), first.shape[2:].numel()
        self.dtype, self.device = first.dtype, first.device
        self.kept = first.nbytes * len(y) <= budget
        self._left = budget

    def __len__(self) -> int:
        """Give the number of examples."""
        return len(self.y)

    def __iter__(self) -> Iterator[tuple[Orbit, Tensor]]:
        for start in range(0, len(self), self.size):
            stop = min(start + self.size, len(self))
            yield self._orbit(start, stop), self.y[start:stop]
            if not self.passes:
                self._progress(stop, len(self))
        self.passes += 1

    def _orbit(self, start: int, stop: int) -> Orbit:
        orbit = self._kept.get(start)
        if orbit is None:
            orbit = self.make(torch.arange(start, stop))
            size = orbit.features.nbytes + (0 if orbit.origin is None else orbit.origin.nbytes)
            if size <= self._left:
                self._left -= size
                self._kept[start] = orbit
        return orbit

    def rows(self) -> Iterator[tuple[Tensor, Tensor | None, Tensor]]:
        """Give the features of all versions as rows ``(n·b, d)``, their weights and the targets.

        The weights are None where there is one version, so that its rows count alike.
        """
        for orbit, y in self:
            n, b = orbit.features.shape[:2]
            weights = orbit.weights.repeat_interleave(b) if n > 1 else None
            yield orbit.features.flatten(0, 1).flatten(1), weights, y
