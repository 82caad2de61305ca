"""The paper's score: how well the averaged kernel agrees with the labels."""

from __future__ import annotations

from augury.forecasting.scores.summed import Summed
from augury.statistics.alignment import Alignment


class AlignmentScore(Summed):
    """Kernel target alignment of K̄ with the labels (Section 5.1 of the paper)."""

    name = "alignment"
    centred = False

    def statistic(self) -> Alignment:
        return Alignment(centred=self.centred, groups=self.groups)

    def trust(self) -> str:
        return (
            "Alignment measures how well averaged features agree with the labels; it does not "
            "forecast a network's accuracy, so train with the top candidates before you rely on "
            "the ranking."
        )


class CentredAlignmentScore(AlignmentScore):
    """The same with both kernels centred, which removes what all classes have in common."""

    name = "centred-alignment"
    centred = True
