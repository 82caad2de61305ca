"""How far an augmentation moves features (the paper's last appendix, layerwise invariance).

    Δ = (1/N) Σ_i E_z ‖φ(x_i) − φ(z)‖² / d,   z ~ T(x_i),

the paper's sum as a mean, so that it does not grow with the number of examples. Beside it stands
the same distance between different examples,

    D = mean over i ≠ j of ‖φ(x_i) − φ(x_j)‖² / d,

computed without pairs as 2 (Σ_i ‖φ(x_i)‖² − ‖Σ_i φ(x_i)‖² / N) / ((N − 1) d). Δ / D is 0 where
the layer is invariant to the augmentation, and near 1 where a view is as far from its example as
another example is.
The state is d + O(1) numbers for any N.
"""

from __future__ import annotations

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury.features.orbit import Orbit
from augury.statistics.base import Estimate, Statistic, group_of


class Invariance(Statistic):
    """Δ and Δ / D of one layer and one augmentation.

    Parameters
    ----------
    groups
        How many groups of examples are left out in turn, for error bars. Those of Δ / D are of Δ,
        with D as it is over all examples.
    """

    parts = 4
    """How many tensors its sums are."""

    def __init__(self, *, groups: int = 20) -> None:
        if groups < 2:
            raise AuguryError(f"error bars need at least 2 groups, not {groups}")
        self.groups = groups

    def update(self, orbit: Orbit, y: Tensor | None, index: Tensor) -> None:
        if orbit.origin is None:
            raise AuguryError(
                "invariance needs the features of the unaugmented examples: pass origin="
            )
        origin = orbit.origin.flatten(1)
        # View by view, in one place: all of them at once would be written and read from memory.
        apart = torch.empty_like(origin)
        moved = [
            torch.linalg.vector_norm(torch.sub(view, origin, out=apart), dim=1)
            for view in orbit.features.flatten(2)
        ]
        each = orbit.weights.double() @ torch.stack(moved).double().square()  # (b,)
        if self.sums is None:
            empty = {"dtype": torch.float64, "device": origin.device}
            by_group = torch.zeros(2, self.groups, **empty)
            self.sums = (*by_group, torch.zeros((), **empty), torch.zeros(origin.shape[1], **empty))
        count, distance, square, total = self.sums
        group = group_of(index, self.groups).to(each.device)
        count.index_add_(0, group, torch.ones_like(each))
        distance.index_add_(0, group, each)
        exact = origin.double()
        square += exact.square().sum()
        total += exact.sum(0)

    def result(self) -> Estimate:
        """Return Δ / D; infinite if D is 0 and Δ is not, and 0 if both are."""
        found, between = self.distance(), self.between()
        scale = 1 / between if between > 0 else (torch.inf if found.value > 0 else 0.0)
        return Estimate(found.value * scale, found.replicates * scale, found.per_class)

    def distance(self) -> Estimate:
        """Return Δ, with its values when each group of examples is left out."""
        count, distance, _, total = self._known()
        n, sum_, d = count.sum(), distance.sum(), len(total)
        kept = count < n  # a group that holds all examples cannot be left out
        without = (sum_ - distance[kept]) / (n - count[kept]) / d
        used = count[kept] > 0
        return Estimate(float(sum_ / n / d), without[used].cpu(), torch.empty(0))

    def between(self) -> float:
        """Return D, the mean squared distance between different examples."""
        count, _, square, total = self._known()
        n, d = count.sum(), len(total)
        if n < 2:
            raise AuguryError(
                "the distance between examples needs at least two examples, but there is one"
            )
        # Rounding may give a value just below zero if all examples are the same.
        return max(0.0, float(2 * (square - total.square().sum() / n) / (n - 1) / d))

    @property
    def size(self) -> int:
        """The number d of features."""
        return len(self._known()[3])

    def _known(self) -> tuple[Tensor, ...]:
        if self.sums is None:
            raise AuguryError("no example was added to this invariance")
        return self.sums
