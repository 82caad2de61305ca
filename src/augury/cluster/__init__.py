"""Independent jobs: in this process, or on the workers of a Dask cluster, with a journal."""

from augury.cluster.connect import Cluster, open_workers
from augury.cluster.journal import Journal
from augury.cluster.workers import Tensors, Workers

__all__ = ["Cluster", "Journal", "Tensors", "Workers", "open_workers"]
