"""Scores that judge a candidate before training, by name."""

from augury.scores.alignment import AlignmentScore, CentredAlignmentScore
from augury.scores.base import Score, Setting

SCORES: dict[str, type[Score]] = {
    score.name: score for score in (AlignmentScore, CentredAlignmentScore)
}

__all__ = ["SCORES", "AlignmentScore", "CentredAlignmentScore", "Score", "Setting"]
