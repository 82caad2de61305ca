"""Open data that may be larger than memory, as shards that are read block by block."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from augury._base.errors import AuguryError
from augury._base.given import as_path
from augury._base.text import flat
from augury.data.labels import encode
from augury.data.load import prepare
from augury.data.readers.find_parts import find_parts, parts_of, shard_files
from augury.data.readers.parts import read_parts
from augury.data.sizes import sides
from augury.data.source import Request, reading
from augury.data.stream import SAMPLE, Shards, check_rows, compact


def is_sharded(source: str | Path) -> bool:
    """Return whether data is a directory of numbered shards."""
    return bool(shard_files(Path(source)))


def open_shards(
    source: str | Path,
    *,
    label: str | None = None,
    size: int | tuple[int, int] | None = None,
    kind: str | None = None,
    task: str | None = None,
    seed: int = 0,
) -> Shards:
    """Open data on disk without reading it whole.

    Labels are read, and at most 20,000 examples: pixels and columns are scaled as these are. What
    uses the result goes through the files block by block, on the workers of a cluster where there
    is one.

    Parameters
    ----------
    source
        A directory of numbered files: ``x_000.npy`` beside ``y_000.npy``, ``.npz`` archives of x
        and y, Parquet tables, or WebDataset's ``.tar`` archives; or a directory with one
        sub-directory of images per class; or one such file.
    label
        The column of Parquet tables to predict.
    size
        Height and width for images, or one number for both; by default that of the first.
    kind, task
        As for `augury.load`.
    seed
        Decides which examples the sample has.
    """
    path = as_path(source)
    if not path.exists():
        raise AuguryError(f"there is no file or directory {flat(path)}; check the path")
    request = Request(label, sides(size), task, SAMPLE, seed)
    with reading(source):
        parts = find_parts(path, request) or parts_of(path, request)
        check_rows(parts, flat(path))
        y = np.concatenate([part.labels() for part in parts])
        labels = encode(y, len(y), parts[0].class_names(), task)
        if labels.tags is not None:
            raise AuguryError("shards with several labels for each example are not supported")
        sample = prepare(read_parts(parts, request), request, name=path.name, kind=kind)
    if sample.classes != labels.classes:
        raise AuguryError(
            f"a class of {flat(path)} has fewer than two examples; leave those examples out"
        )
    assert sample.preparation is not None
    centre = sample.preparation.centre
    numbers = labels.y if labels.classes is not None else labels.y - centre
    return Shards(parts, compact(numbers, labels.count), sample)
