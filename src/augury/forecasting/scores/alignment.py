"""The paper's score: how well the averaged kernel agrees with the labels."""

from __future__ import annotations

import torch

from augury.augmentations.base import Augmentation
from augury.forecasting.scores.base import ClosedForm
from augury.statistics.alignment import Alignment
from augury.statistics.base import Estimate


class AlignmentScore(ClosedForm):
    """Kernel target alignment of K̄ with the labels (Section 5.1 of the paper)."""

    name = "alignment"
    centred = False
    groups = 20

    @torch.no_grad()
    def evaluate(self, augmentation: Augmentation) -> Estimate:
        statistic = Alignment(centred=self.centred, groups=self.groups)
        targets = self.setting.data.targets()
        for orbit, index in self.setting.orbits(augmentation, self.groups):
            statistic.update(orbit, targets[index], index)
            self.tick(repr(augmentation))
        return statistic.result()

    def trust(self) -> str:
        return (
            "Alignment says how well averaged features agree with the labels; it is no forecast of "
            "a network's accuracy, so try the leaders before you rely on them."
        )


class CentredAlignmentScore(AlignmentScore):
    """The same with both kernels centred, which takes away what all classes share."""

    name = "centred-alignment"
    centred = True
