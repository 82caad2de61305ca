"""Table 1: no augmentation, traditional augmentation and augmented Fourier features."""

from augury_paper.table1.experiment import cells
from augury_paper.table1.page import section

__all__ = ["cells", "section"]
