"""Figure 3 and its appendix: averaging features at a layer of LeNet."""

from augury.reproduce.layers.experiment import cells
from augury.reproduce.layers.page import section

__all__ = ["cells", "section"]
