"""Figure 3 and its appendix: averaging features at a layer of LeNet."""

from augury_paper.averaging.experiment import cells
from augury_paper.averaging.page import section

__all__ = ["cells", "section"]
