"""Whatever a user holds in Python, as examples and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
from scipy.sparse import issparse
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

from augury._base.errors import AuguryError
from augury._base.text import listed
from augury.data.layout import to_array
from augury.data.readers.collections import is_collection, read_collection
from augury.data.readers.hugging_face import is_hugging_face, read_hugging_face
from augury.data.readers.iterables import read_iterable
from augury.data.readers.mapstyle import is_map_style, read_map_style
from augury.data.readers.npy import read_mapped
from augury.data.readers.table import read_frame
from augury.data.source import Request, Source


def read_object(
    x: Any, y: Any, request: Request, classes: Sequence[object] | None = None
) -> Source:
    """Read arrays, frames, datasets and iterables; `classes` are names for 0, 1, …"""
    names = None if classes is None else tuple(str(name) for name in classes)
    if isinstance(x, Mapping) and "train" in x:  # Hugging Face's DatasetDict, or a plain dict
        found = read_object(x["train"], y, request, classes)
        others = [key for key in x if key != "train"]
        note = "train was read" + (f", but not {listed(others)}" if others else "")
        return replace(found, notes=(note, *found.notes))
    if isinstance(x, DataLoader):
        found = read_object(_inside(x), y, request, classes)
        note = "the dataset inside the loader was read, example by example"
        return replace(found, notes=(note, *found.notes))
    if issparse(x):
        return read_object(x.toarray(), y, request, classes)  # type: ignore[attr-defined]  # sparse
    if y is not None and is_collection(x):
        return read_collection(x, y, names)
    frame = _frame(x)
    if frame is not None:
        return replace(read_frame(frame, request, "the frame", y), classes=names)
    if isinstance(x, TensorDataset) and y is None and len(x.tensors) == 2:
        x, y = x.tensors
    if is_hugging_face(x) and y is None:
        return read_hugging_face(x, request, names)
    if not isinstance(x, IterableDataset) and is_map_style(x, y):
        return read_map_style(x, y, request, names)
    if isinstance(x, np.memmap) and y is not None:
        return read_mapped(x, y, request, classes=names)
    if y is None and _is_iterable(x):
        return read_iterable(x, request, names or _class_names(x))
    if y is None:
        raise AuguryError("labels are missing: pass y with x, or a dataset of pairs (x, y)")
    if request.label is not None:
        raise AuguryError("label= is only for frames and datasets with entries; pass only y")
    return Source(to_array(x), y, names)


def _inside(loader: DataLoader[Any]) -> Any:
    """Return the dataset of a loader, or the part of it that its sampler draws from."""
    indices = getattr(loader.sampler, "indices", None)
    dataset: Any = loader.dataset
    return dataset if indices is None else Subset(dataset, [int(i) for i in indices])


def _frame(x: Any) -> Any:
    """Return a frame of pandas, polars or pyarrow as one of pandas; None for anything else."""
    package = type(x).__module__.split(".")[0]
    if package == "pandas" and type(x).__name__ == "DataFrame":
        return x
    if package == "polars" and type(x).__name__ in ("DataFrame", "LazyFrame"):
        import pandas as pd

        whole = x.collect() if type(x).__name__ == "LazyFrame" else x
        return pd.DataFrame({name: whole[name].to_list() for name in whole.columns})
    if package == "pyarrow" and type(x).__name__ == "Table":
        return x.to_pandas()
    return None


def _is_iterable(x: Any) -> TypeGuard[Iterable[Any]]:
    whole = (str, bytes, Mapping, np.ndarray, list, tuple)
    return isinstance(x, Iterable) and not isinstance(x, whole) and not hasattr(x, "__array__")


def _class_names(x: Any) -> tuple[str, ...] | None:
    """Return the names that Hugging Face's iterable datasets have for their classes."""
    features = getattr(x, "features", None)
    kinds = list(features.values()) if isinstance(features, Mapping) else []
    named = [kind for kind in kinds if type(kind).__name__ == "ClassLabel"]
    return tuple(named[0].names) if len(named) == 1 else None
