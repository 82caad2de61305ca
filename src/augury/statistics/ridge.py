"""What training with T gives for a quadratic loss, in closed form, from sums.

Least squares on all views of all examples, with a penalty λ‖W‖², has the solution

    W = (E[φφᵀ] + λI)⁻¹ E[ψ yᵀ],   E over examples and views, ψ = E φ over views,

so it needs two sums over the examples: d × d and d × C, whatever their number. Held for each fold
of the examples, they give the solution without any one fold by subtraction.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_list, as_number, as_whole, check_kind
from augury.features.orbit import Orbit
from augury.statistics.base import Estimate, Statistic, check_update, group_of
from augury.statistics.heldout import HeldOutRisk, folds_of

_MOST_FEATURES = 8192  # (folds, d, d) in float64 is 2.7 GB there


class RidgeRisk(Statistic):
    """Loss of augmented ridge regression on the examples that each fold held out.

    A constant feature as large as φ stands for the bias, so nothing is centred and no label leaks
    from what is held out; the result does not change when φ is multiplied by a number.

    Adding b examples of n views costs 2·n·b·d² operations; the result costs folds·d³/3 for
    each penalty tried, two more than there are `ratios`: a Cholesky factor each, which for fewer
    than twenty penalties is less than an eigendecomposition a fold (about 9 d³).

    Parameters
    ----------
    held_out
        All examples, with the features to judge them by.
    folds
        How many; an example's fold follows from its index alone.
    ratios
        The penalties λ to choose from, as shares of the mean diagonal of E[φφᵀ]. Those √10 to
        either side of the best are tried too.
    """

    def __init__(
        self,
        held_out: HeldOutRisk,
        *,
        folds: int = 5,
        ratios: tuple[float, ...] = (1e-3, 1e-2, 0.1, 1.0),
    ) -> None:
        check_kind("held_out", held_out, HeldOutRisk, "a HeldOutRisk")
        ratios = tuple(
            as_number("ratios", ratio, positive=True) for ratio in as_list("ratios", ratios)
        )
        if as_whole("folds", folds) < 2:
            raise AuguryError(f"holding examples out needs at least 2 folds, not {folds}")
        self.held_out, self.folds, self.ratios = held_out, folds, ratios

    def update(self, orbit: Orbit, y: Tensor, index: Tensor) -> None:
        check_update(orbit, y, index)
        phi, weights = orbit.features, orbit.weights
        y, d = y.to(phi), phi.shape[-1]
        if self.sums is None:
            if d > _MOST_FEATURES:
                raise AuguryError(
                    f"ridge takes at most {_MOST_FEATURES:,} features, but there are {d:,}; "
                    "use a feature map with fewer, or the score kernel-ridge"
                )
            shapes = [(d + 1, d + 1), (d + 1, y.shape[1]), ()]
            self.sums = tuple(
                torch.zeros(self.folds, *shape, dtype=torch.float64, device=phi.device)
                for shape in shapes
            )
        moment, cross, count = self.sums
        root = weights.sqrt()[:, None, None]
        fold = group_of(index, self.folds)
        for f in fold.unique().tolist():
            rows = (fold == f).nonzero().squeeze(1).to(phi.device)
            part, t = (phi, y) if len(rows) == len(y) else (phi[:, rows], y[rows])
            p = (_with_bias(part) * root).flatten(0, 1)
            moment[f] += p.mT @ p
            cross[f] += _with_bias(Orbit(part, weights).mean).mT @ t
            count[f] += len(t)

    def without_data(self) -> RidgeRisk:
        nothing = replace(self.held_out, features=torch.empty(0, 0), targets=torch.empty(0, 0))
        return RidgeRisk(nothing, folds=self.folds, ratios=self.ratios)

    def result(self) -> Estimate:
        """Predict what each fold held out, and judge that; the best penalty counts."""
        return self.held_out.best(self.predict, self.ratios)

    def predict(self, ratio: float) -> Tensor:
        """Predict each held-out example from all folds but its own: ``(N, C)``."""
        features = self.held_out.features
        parts = folds_of(len(features), self.folds, features.device)
        solutions = self.solve(ratio)
        out = solutions.new_empty(len(features), solutions.shape[-1])
        for f, (_, rows) in enumerate(parts):
            out[rows] = _with_bias(features[rows].to(solutions)) @ solutions[f]
        return out

    def solve(self, ratio: float) -> Tensor:
        """Return W without each fold in turn, ``(folds, d + 1, C)``; its last row is the bias."""
        if self.sums is None:
            raise AuguryError("no example was added to this ridge regression")
        moment, cross, count = (part.sum(0) for part in self.sums)
        diagonal = moment.diagonal() / count
        size = diagonal[:-1].sum().sqrt()  # √E‖φ‖²
        scale = torch.ones_like(diagonal)
        scale[-1] = torch.where(size > 0, size, 1)
        penalty = ratio * (diagonal * scale.square()).mean()
        solutions = torch.empty_like(self.sums[1])
        for f, (own, own_cross, held) in enumerate(zip(*self.sums, strict=True)):
            inside = (moment - own).mul_(scale[:, None] / (count - held)).mul_(scale)
            inside.diagonal().add_(penalty)
            right = (cross - own_cross) * (scale[:, None] / (count - held))
            solutions[f] = scale[:, None] * solve_positive(inside, right)
        return solutions


def solve_positive(matrix: Tensor, right: Tensor) -> Tensor:
    """Solve with a positive definite matrix; not a number where it is not one.

    Sums of float32 features are rounded, so that with a small penalty it may just not be.
    """
    factor, failed = torch.linalg.cholesky_ex(matrix)
    return torch.where(failed > 0, torch.nan, torch.cholesky_solve(right, factor))


def _with_bias(features: Tensor) -> Tensor:
    return F.pad(features, (0, 1), value=1.0)
