"""Scores that judge a candidate before training, by name."""

from augury.scores.alignment import AlignmentScore, CentredAlignmentScore
from augury.scores.base import Score, Setting
from augury.scores.kernel_ridge import KernelRidgeScore
from augury.scores.ridge import RidgeScore
from augury.scores.trial import TrialScore

SCORES: dict[str, type[Score]] = {
    score.name: score
    for score in (TrialScore, AlignmentScore, CentredAlignmentScore, RidgeScore, KernelRidgeScore)
}

__all__ = [
    "SCORES",
    "AlignmentScore",
    "CentredAlignmentScore",
    "KernelRidgeScore",
    "RidgeScore",
    "Score",
    "Setting",
    "TrialScore",
]
