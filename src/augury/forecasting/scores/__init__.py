"""Scores that judge a candidate before training, by name."""

from augury.forecasting.scores.alignment import AlignmentScore, CentredAlignmentScore
from augury.forecasting.scores.base import Score, Setting
from augury.forecasting.scores.boosting import BoostingScore
from augury.forecasting.scores.kernel_ridge import KernelRidgeScore
from augury.forecasting.scores.ridge import RidgeScore
from augury.forecasting.scores.trial import TrialScore

SCORES: dict[str, type[Score]] = {
    score.name: score
    for score in (
        TrialScore,
        BoostingScore,
        AlignmentScore,
        CentredAlignmentScore,
        RidgeScore,
        KernelRidgeScore,
    )
}

__all__ = [
    "SCORES",
    "AlignmentScore",
    "BoostingScore",
    "CentredAlignmentScore",
    "KernelRidgeScore",
    "RidgeScore",
    "Score",
    "Setting",
    "TrialScore",
]
