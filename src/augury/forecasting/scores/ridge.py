"""What training with a candidate gives for a quadratic loss, judged on clean examples."""

from __future__ import annotations

from functools import cached_property

import torch

from augury.augmentations import identity
from augury.augmentations.base import Augmentation
from augury.forecasting.scores.base import ClosedForm
from augury.statistics.base import Estimate
from augury.statistics.heldout import HeldOutRisk
from augury.statistics.ridge import RidgeRisk


class RidgeScore(ClosedForm):
    """Minus the held-out loss of ridge regression on all versions of the other folds' examples.

    Examples are judged as they are, by log-loss after a one-parameter calibration for classes and
    by squared error for a real target; the penalty is chosen for each candidate. The clean
    features, ``(N, d)``, are computed once for all candidates.

    A candidate with n versions of N examples costs 2·N·n·d² + folds·penalties·d³/3 operations
    beyond its features: 0.3 · 10¹² for 5,000 examples, 8 versions and 1,800 features. At most
    8,192 features are taken.
    """

    name = "ridge"
    folds = 5
    groups = 20

    def ticks(self, candidates: int) -> int:
        return (self.setting.batches + 1) * candidates  # one more for the solution

    @torch.no_grad()
    def evaluate(self, augmentation: Augmentation) -> Estimate:
        statistic = RidgeRisk(self._clean, folds=self.folds)
        targets = self._clean.targets
        for orbit, index in self.setting.orbits(augmentation, self.folds):
            statistic.update(orbit, targets[index], index)
            self.tick(repr(augmentation))
        found = statistic.result()
        self.tick(repr(augmentation))
        return found

    @cached_property
    def _clean(self) -> HeldOutRisk:
        data = self.setting.data
        parts = list(self.setting.orbits(identity(), self.folds))
        index = torch.cat([part for _, part in parts])
        features = torch.cat([orbit.mean for orbit, _ in parts])
        features = features[index.argsort().to(features.device)]
        return HeldOutRisk(features, data.targets(), data.classes is not None, self.groups)
