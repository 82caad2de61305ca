"""What training with T gives for a quadratic loss, in closed form, from sums.

Least squares on all versions of all examples, with a penalty λ‖W‖², has the solution

    W = (E[φφᵀ] + λI)⁻¹ E[ψ yᵀ],   E over examples and versions, ψ = E φ over versions,

so that it needs two sums over the examples: d × d and d × C whatever their number. Held for each
fold of the examples, they give the solution without any one fold by subtraction.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from augury.errors import AuguryError
from augury.orbit import Orbit
from augury.statistics.base import Estimate, Statistic, group_of
from augury.statistics.heldout import HeldOut

_MOST_FEATURES = 8192  # (folds, d, d) in float64 is 2.7 GB there


class Ridge(Statistic):
    """Loss of augmented ridge regression on the examples that each fold held out.

    A constant feature of the same size as φ stands for the bias, so nothing is centred and no
    label leaks into the fit; the result does not change when φ is multiplied by a number.

    Adding b examples of n versions costs 2·n·b·d² operations, the result folds·L·d³/3 for L
    penalties: a Cholesky factor each, which is cheaper than one eigendecomposition a fold
    (about 9 d³, and half of it bound by memory) for fewer than twenty penalties.

    Parameters
    ----------
    held_out
        All examples, with the features to judge them by.
    folds
        How many; an example's fold follows from its index alone.
    ratios
        The penalties λ to choose from, as shares of the mean diagonal of E[φφᵀ].
    """

    def __init__(
        self, held_out: HeldOut, *, folds: int = 5, ratios: tuple[float, ...] = (1e-3, 1e-2, 0.1, 1)
    ) -> None:
        if folds < 2:
            raise AuguryError(f"holding examples out needs at least 2 folds, not {folds}")
        self.held_out, self.folds, self.ratios = held_out, folds, ratios

    def update(self, orbit: Orbit, y: Tensor, index: Tensor) -> None:
        phi, weights = orbit.features, orbit.weights
        y = y.to(phi)
        d = phi.shape[-1]
        if self.sums is None:
            if d > _MOST_FEATURES:
                raise AuguryError(
                    f"ridge takes at most {_MOST_FEATURES:,} features, and there are {d:,}; "
                    "use a feature map with fewer, or the score kernel-ridge"
                )
            shapes = [(d + 1, d + 1), (d + 1, y.shape[1]), ()]
            kinds = {"dtype": torch.float64, "device": phi.device}
            self.sums = tuple(torch.zeros(self.folds, *shape, **kinds) for shape in shapes)
        moment, cross, count = self.sums
        root = weights.sqrt()[:, None, None]
        fold = group_of(index, self.folds)
        for f in fold.unique().tolist():
            rows = (fold == f).nonzero().squeeze(1).to(phi.device)
            part, t = (phi, y) if len(rows) == len(y) else (phi[:, rows], y[rows])
            psi = Orbit(part, weights).mean
            p = (F.pad(part, (0, 1), value=1.0) * root).flatten(0, 1)
            moment[f] += p.mT @ p
            cross[f] += F.pad(psi, (0, 1), value=1.0).mT @ t
            count[f] += len(t)

    def result(self) -> Estimate:
        """Solve for each fold and penalty, predict what was held out and keep the best penalty."""
        if self.sums is None:
            raise AuguryError("no example was added to this ridge regression")
        features = self.held_out.features
        fold = group_of(torch.arange(len(features), device=features.device), self.folds)
        outputs = self.sums[1].shape[-1]
        predictions = features.new_zeros(
            len(self.ratios), len(features), outputs, dtype=torch.float64
        )
        for f, solutions in enumerate(self.solve()):
            rows = (fold == f).nonzero().squeeze(1)
            inputs = F.pad(features[rows].double(), (0, 1), value=1.0)
            predictions[:, rows] = inputs @ solutions
        return self.held_out.estimate(predictions)

    def solve(self) -> list[Tensor]:
        """Give the solutions without each fold, ``(L, d + 1, C)``; the last row is the bias."""
        assert self.sums is not None
        moments, crosses, counts = self.sums
        moment, cross, count = (part.sum(0) for part in self.sums)
        if bool((counts == count).any()):
            raise AuguryError(
                f"all {int(count)} examples fell into one fold, so none could be held out; "
                "give more examples"
            )
        diagonal = moment.diagonal() / count
        size = diagonal[:-1].sum().sqrt()  # √E‖φ‖²: what the constant feature is scaled to
        if not bool(size.isfinite()):
            raise AuguryError(
                "the features of these examples are not finite; use another feature map"
            )
        scale = torch.ones_like(diagonal)
        scale[-1] = torch.where(size > 0, size, 1)
        mean = (diagonal * scale.square()).mean()
        solutions = []
        for own, own_cross, held in zip(moments, crosses, counts, strict=True):
            inside = (moment - own) * (scale[:, None] * scale / (count - held))
            right = (cross - own_cross) * (scale[:, None] / (count - held))
            found = []
            for ratio in self.ratios:
                penalised = inside.clone()
                penalised.diagonal().add_(ratio * mean)
                factor = torch.linalg.cholesky(penalised)
                found.append(scale[:, None] * torch.cholesky_solve(right, factor))
            solutions.append(torch.stack(found))
        return solutions

