"""Ridge regression with the augmented kernel: the first-order theory of training with T."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from augury.augmentations.base import Augmentation
from augury.features.orbit import Orbit
from augury.forecasting.scores.base import ClosedForm, Setting
from augury.statistics.base import Estimate
from augury.statistics.heldout import HeldOutRisk, folds_of
from augury.statistics.ridge import RidgeRisk, solve_positive

_MOST = 5000


class KernelRidgeScore(ClosedForm):
    """Minus the held-out loss of ridge regression with K̄ = TKTᵀ (Section 4.1 of the paper).

    K̄ = ΨΨᵀ has averaged features ψ at both ends, so held-out examples are averaged over
    their views too, and the problem is N × N whatever the number of views. A constant is added to
    K̄ for the bias; classes, penalties and errors are as for the score ``ridge``.

    With m the smaller of N and d, a candidate costs 2·N·d·m + folds·penalties·m³/3 operations
    beyond its features: with d < N the same predictions are found from ΨᵀΨ. More than 5,000
    examples are subsampled, so it is about 10¹² at most.
    """

    name = "kernel-ridge"
    measured = (
        "In four comparisons with real training on images, its mean rank correlation with the "
        "real gains was 0.55 with the gradient of a network as features; others were not measured."
    )
    folds = 5
    groups = 20
    ratios = (1e-3, 1e-2, 0.1, 1.0)
    """Penalties to choose from, as shares of the mean diagonal of K̄."""

    def __init__(
        self,
        setting: Setting,
        progress: Callable[[int, int, str], None] = lambda done, total, now: None,
    ) -> None:
        self.given = len(setting.data)
        if self.given > _MOST:
            setting = replace(setting, data=setting.data.subsample(_MOST, setting.seed))
        super().__init__(setting, progress)

    def ticks(self, candidates: int) -> int:
        return (self.setting.batches + 1) * candidates  # one more for the solution

    @torch.no_grad()
    def evaluate(self, augmentation: Augmentation) -> Estimate:
        data = self.setting.data
        parts, order = [], []
        for orbit, index in self.setting.orbits(augmentation, self.folds):
            parts.append(orbit.mean)
            order.append(index)
            self.tick(repr(augmentation))
        psi = torch.cat(parts)
        psi = psi[torch.cat(order).argsort().to(psi.device)]
        held_out = HeldOutRisk(psi, data.targets(), data.classes is not None, self.groups)
        solve = by_features if psi.shape[1] < len(psi) else by_kernel
        found = solve(held_out, self.folds, self.ratios)
        self.tick(repr(augmentation))
        return found

    def describe(self) -> str:
        used = len(self.setting.data)
        less = f"; {used:,} of {self.given:,} examples" if used < self.given else ""
        return super().describe() + less


def by_kernel(held_out: HeldOutRisk, folds: int, ratios: tuple[float, ...]) -> Estimate:
    """Solve (K + mλI) α = Y for the m examples outside each fold: m × m.

    λ is a ratio times the mean diagonal of K over the number N of all examples.
    """
    psi = held_out.features
    size = psi.double().square().sum(1).mean()
    size = torch.where(size > 0, size, 1)
    kernel = (psi @ psi.mT).double() + size  # the constant feature is as large as ψ
    targets = held_out.targets.to(kernel)
    parts = folds_of(len(psi), folds, psi.device)

    def predict(ratio: float) -> Tensor:
        out = torch.empty_like(targets)
        for inside, outside in parts:
            within = kernel[inside][:, inside]
            within.diagonal().add_(ratio * 2 * size * len(inside) / len(psi))
            solution = solve_positive(within, targets[inside])
            out[outside] = kernel[outside][:, inside] @ solution
        return out

    return held_out.best(predict, ratios)


def by_features(held_out: HeldOutRisk, folds: int, ratios: tuple[float, ...]) -> Estimate:
    """Find the same from (ΨᵀΨ/n + λI) W = ΨᵀY/n: ``(d, d)``."""
    psi = held_out.features
    share = (psi.shape[1] + 1) / len(psi)  # from K's mean diagonal to that of E[ψψᵀ]
    statistic = RidgeRisk(held_out, folds=folds, ratios=tuple(ratio * share for ratio in ratios))
    index = torch.arange(len(psi))
    statistic.update(Orbit(psi.unsqueeze(0), psi.new_ones(1)), held_out.targets, index)
    return statistic.result()
