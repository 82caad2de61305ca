"""Figure 2: does kernel target alignment foretell accuracy?"""

from augury.reproduce.alignment.experiment import cells
from augury.reproduce.alignment.page import section

__all__ = ["cells", "section"]
