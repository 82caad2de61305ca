"""Figure 1 and its appendix: how close the approximate objectives are to the true one."""

from augury_paper.approximation.experiment import cells
from augury_paper.approximation.page import section

__all__ = ["cells", "section"]
