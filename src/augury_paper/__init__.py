"""The paper, reproduced: its table and figures from this implementation, beside its numbers."""

from augury_paper.run import EXPERIMENTS, Outcome, make_page, reproduce
from augury_paper.settings import PAPER, QUICK, Settings

__all__ = ["EXPERIMENTS", "PAPER", "QUICK", "Outcome", "Settings", "make_page", "reproduce"]
