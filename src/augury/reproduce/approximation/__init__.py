"""Figure 1 and its appendix: how close the approximate objectives are to the true one."""

from augury.reproduce.approximation.experiment import cells
from augury.reproduce.approximation.page import section

__all__ = ["cells", "section"]
