"""Table 1: no augmentation, traditional augmentation and augmented Fourier features."""

from augury.reproduce.table1.experiment import cells
from augury.reproduce.table1.section import section

__all__ = ["cells", "section"]
