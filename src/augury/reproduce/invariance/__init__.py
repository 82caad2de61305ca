"""The appendix's last figure: does training with an augmentation make layers invariant to it?"""

from augury.reproduce.invariance.experiment import cells
from augury.reproduce.invariance.page import section

__all__ = ["cells", "section"]
