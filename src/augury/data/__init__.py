"""(x, y): examples from arrays, datasets and files, checked and in one layout."""

from augury.data.arrays import as_dataset
from augury.data.dataset import Dataset
from augury.data.embedded import EMBEDDED
from augury.data.load import load

__all__ = ["EMBEDDED", "Dataset", "as_dataset", "load"]
