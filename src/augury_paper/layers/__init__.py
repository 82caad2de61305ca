"""Figure 3 and its appendix: averaging features at a layer of LeNet."""

from augury_paper.layers.experiment import cells
from augury_paper.layers.page import section

__all__ = ["cells", "section"]
