"""(x, y): examples from arrays, datasets and files, checked and in one layout."""

from augury.data.dataset import Dataset
from augury.data.describe import describe
from augury.data.load import as_dataset, load
from augury.data.new import NewExamples, load_new
from augury.data.preparation import Preparation
from augury.data.readers.embedded import EMBEDDED
from augury.data.readers.noise import load_noise
from augury.data.shards import is_sharded, open_shards
from augury.data.stream import InMemory, Shards, Stream

__all__ = [
    "EMBEDDED",
    "Dataset",
    "InMemory",
    "NewExamples",
    "Preparation",
    "Shards",
    "Stream",
    "as_dataset",
    "describe",
    "is_sharded",
    "load",
    "load_new",
    "load_noise",
    "open_shards",
]
