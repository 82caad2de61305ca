"""The paper's score: how well the averaged kernel agrees with the labels."""

from __future__ import annotations

from augury.forecasting.scores.summed import Summed
from augury.statistics.alignment import Alignment


class AlignmentScore(Summed):
    """Kernel target alignment of K̄ with the labels (Section 5.1 of the paper)."""

    name = "alignment"
    measured = (
        "In five comparisons with real training on images, its mean rank correlation with the "
        "real gains was 0.06."
    )
    centred = False

    def statistic(self) -> Alignment:
        return Alignment(centred=self.centred, groups=self.groups)


class CentredAlignmentScore(AlignmentScore):
    """The same with both kernels centred, which removes what all classes have in common."""

    name = "centred-alignment"
    measured = (
        "In five comparisons with real training on images, its mean rank correlation with the "
        "real gains was 0.30."
    )
    centred = True
