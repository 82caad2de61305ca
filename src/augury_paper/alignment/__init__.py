"""Figure 2: does kernel target alignment predict accuracy?"""

from augury_paper.alignment.experiment import cells
from augury_paper.alignment.page import section

__all__ = ["cells", "section"]
