"""The appendix's last figure: does training with an augmentation make layers invariant to it?"""

from augury_paper.invariance.experiment import cells
from augury_paper.invariance.page import section

__all__ = ["cells", "section"]
