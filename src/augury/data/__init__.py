"""(x, y): examples from arrays, datasets and files, checked and in one layout."""

from augury.data.dataset import Dataset
from augury.data.load import load
from augury.data.readers.arrays import as_dataset
from augury.data.readers.embedded import EMBEDDED

__all__ = ["EMBEDDED", "Dataset", "as_dataset", "load"]
