"""Kernel target alignment (Section 5.1 of the paper; Cristianini et al., 2002), from sums.

The paper's code averages kernels over mini-batches, which makes the ratio depend on the batch
size. Sums over all pairs cost no more: with features Ψ ``(N, d)`` and targets Y ``(N, C)``,

    ⟨K̄, K_Y⟩ = ‖ΨᵀY‖²,   ⟨K̄, K̄⟩ = ‖ΨᵀΨ‖²,   ⟨K_Y, K_Y⟩ = ‖YᵀY‖²,

so the state is d × d whatever N is, and adding a batch of b costs O(b d²).
"""

from __future__ import annotations

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_whole
from augury.features.orbit import Orbit
from augury.statistics.base import Estimate, Statistic, check_update, group_of


class Alignment(Statistic):
    """Alignment of the averaged kernel K̄ = ΨΨᵀ with the target kernel K_Y = YYᵀ.

    Parameters
    ----------
    centred
        Centre both kernels (Cortes et al., 2012), which removes what all classes have in common.
    groups
        How many groups of examples are left out in turn, for error bars.
    """

    def __init__(self, *, centred: bool = False, groups: int = 20) -> None:
        if as_whole("groups", groups) < 2:
            raise AuguryError(f"error bars need at least 2 groups, not {groups}")
        self.centred, self.groups = centred, groups

    def update(self, orbit: Orbit, y: Tensor, index: Tensor) -> None:
        check_update(orbit, y, index)
        psi = orbit.mean
        y = y.to(psi)
        group = group_of(index, self.groups)
        if self.sums is None:
            self.sums = _empty(self.groups, psi.shape[1], y.shape[1], psi.device)
        for g in group.unique().tolist():
            rows = (group == g).nonzero().squeeze(1)
            whole = len(rows) == len(psi)
            p, t = (psi, y) if whole else (psi[rows], y[rows])
            moment, cross, target, sum_psi, sum_y, count = self.sums
            moment[g] += p.mT @ p
            cross[g] += p.mT @ t
            target[g] += t.mT @ t
            sum_psi[g] += p.sum(0)
            sum_y[g] += t.sum(0)
            count[g] += len(p)

    def result(self) -> Estimate:
        if self.sums is None:
            raise AuguryError("no example was added to this alignment")
        total = tuple(part.sum(0) for part in self.sums)
        value, per_class = self._ratio(total)
        replicates = []
        for g in range(self.groups):
            rest = tuple(t - part[g] for t, part in zip(total, self.sums, strict=True))
            replicates.append(self._ratio(rest))
        whole, by_class = (torch.stack(parts).cpu() for parts in zip(*replicates, strict=True))
        chance = float(self._chance(total))
        return Estimate(float(value), whole, per_class.cpu(), chance, by_class)

    def _ratio(self, sums: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Return the alignment, and that of each class with the kernel of its own members."""
        moment, cross, target, *_ = self._centre(sums)
        size = moment.norm()
        shared = cross.square().sum(0)  # by class; their sum is ⟨K̄, K_Y⟩
        return shared.sum() / (size * target.norm()), shared / (size * target.diagonal())

    def _chance(self, sums: tuple[Tensor, ...]) -> Tensor:
        """Return the mean alignment over all permutations of the labels.

        A permutation keeps the diagonal of K_Y in place and spreads the rest over all pairs:
        E⟨K̄, πK_Yπᵀ⟩ = tr K̄ tr K_Y / N + (ΣK̄ − tr K̄)(ΣK_Y − tr K_Y) / (N (N − 1)).
        """
        moment, _, target, sum_psi, sum_y, count = self._centre(sums)
        own, own_y = moment.trace(), target.trace()
        others = sum_psi.square().sum() - own
        others_y = sum_y.square().sum() - own_y
        shared = own * own_y / count + others * others_y / (count * (count - 1)).clamp_min(1)
        return shared / (moment.norm() * target.norm())

    def _centre(self, sums: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the sums of the centred features and targets, if these are to be centred."""
        moment, cross, target, sum_psi, sum_y, count = sums
        if not self.centred:
            return sums
        moment = moment - torch.outer(sum_psi, sum_psi) / count
        cross = cross - torch.outer(sum_psi, sum_y) / count
        target = target - torch.outer(sum_y, sum_y) / count
        return moment, cross, target, 0 * sum_psi, 0 * sum_y, count


def _empty(groups: int, d: int, classes: int, device: torch.device) -> tuple[Tensor, ...]:
    shapes = [(d, d), (d, classes), (classes, classes), (d,), (classes,), ()]
    return tuple(torch.zeros(groups, *s, dtype=torch.float64, device=device) for s in shapes)
