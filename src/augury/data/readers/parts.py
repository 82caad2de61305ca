"""Files that hold a part of the data each: arrays, tables, archives of images."""

from __future__ import annotations

import os
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import cause, flat, listed
from augury.data.readers.npy import labels_beside, mapped
from augury.data.sampling import select
from augury.data.source import Request, Source

Rows = slice | np.ndarray
_NUMBERED = re.compile(r"\d+$")


class Part(ABC):
    """A file of examples with labels, of which any rows can be read without the others.

    It is sent to workers, which read the file by its path.
    """

    path: Path
    rows: int

    @abstractmethod
    def labels(self) -> np.ndarray:
        """Return the labels of all rows."""

    @abstractmethod
    def _take(self, rows: Rows) -> np.ndarray:
        """Return some examples: rows in order."""

    def take(self, rows: Rows) -> np.ndarray:
        """Return some examples; raise with the file's name if they cannot be read."""
        with named(self.path):
            return self._take(rows)

    def class_names(self) -> tuple[str, ...] | None:
        """Return the names of the classes 0, 1, …, where the format has them."""
        return None

    def digest(self) -> str:
        """Return what sets the file apart from others."""
        with named(self.path):
            found = os.stat(self.path)
        return f"{self.path} {found.st_size} {found.st_mtime_ns}"

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.rows


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Turn any error of a reader into one line with the name of the file."""
    try:
        yield
    except (AuguryError, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise anything
        raise AuguryError(
            f"the shard {flat(path)} cannot be read ({cause(error)}); every worker must see it "
            "under this path"
        ) from None


@dataclass(frozen=True)
class NpyPart(Part):
    """An ``.npy`` file with its labels in another one next to it, memory-mapped."""

    path: Path
    rows: int
    beside: Path

    @classmethod
    def open(cls, path: Path, request: Request) -> NpyPart:
        """Read the header of a file."""
        beside = labels_beside(path)
        if beside is None:
            raise AuguryError(
                f"there are no labels next to {flat(path)}: expected a matching name, such as "
                "x_001.npy and y_001.npy"
            )
        return cls(path, len(mapped(path)), beside)

    def labels(self) -> np.ndarray:
        return np.array(mapped(self.beside))

    def _take(self, rows: Rows) -> np.ndarray:
        return np.array(mapped(self.path)[rows])


@dataclass(frozen=True)
class NpzPart(Part):
    """An ``.npz`` archive of x and y; mapped where it is not compressed."""

    path: Path
    rows: int

    @classmethod
    def open(cls, path: Path, request: Request) -> NpzPart:
        """Read the header of an archive."""
        with named(path):
            return cls(path, len(_map_member(path, "x")))

    def labels(self) -> np.ndarray:
        with named(self.path):
            return np.array(_map_member(self.path, "y"))

    def _take(self, rows: Rows) -> np.ndarray:
        return np.array(_map_member(self.path, "x")[rows])


def _map_member(path: Path, name: str) -> np.ndarray:
    """Map an array of an archive, or read it where it is compressed."""
    with zipfile.ZipFile(path) as archive:
        if f"{name}.npy" not in archive.namelist():
            raise AuguryError(
                f"the shard {flat(path)} has no array {name}: expected x and y, found "
                f"{listed(archive.namelist())}"
            )
        about = archive.getinfo(f"{name}.npy")
        with archive.open(about) as stream:
            if about.compress_type != zipfile.ZIP_STORED:
                return np.lib.format.read_array(stream, allow_pickle=False)
            read = (np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0)
            version = np.lib.format.read_magic(stream)
            shape, fortran, dtype = read[version != (1, 0)](stream)
            inside = stream.tell()
    if dtype.hasobject:
        raise AuguryError(f"the shard {flat(path)} holds a pickle, which is not read")
    with open(path, "rb") as file:  # the local header before the member has a length of its own
        file.seek(about.header_offset + 26)
        lengths = np.frombuffer(file.read(4), "<u2")
    offset = about.header_offset + 30 + int(lengths.sum()) + inside
    order: Any = "F" if fortran else "C"
    return np.memmap(path, dtype, "r", offset, shape, order)


@dataclass(frozen=True)
class ParquetPart(Part):
    """A Parquet table: a column of labels, and columns of numbers."""

    path: Path
    rows: int
    label: str
    columns: tuple[str, ...]

    @classmethod
    def open(cls, path: Path, request: Request) -> ParquetPart:
        """Read the schema of a file."""
        with named(path):
            from pyarrow import parquet, types

            schema = parquet.read_schema(path)
            label = request.label or ""
            if label not in schema.names:
                raise AuguryError(
                    f"which column of {flat(path)} is the label? give --label (label= in Python), "
                    f"one of: {listed(schema.names, 12)}"
                )
            numbers = [
                f.name
                for f in schema
                if f.name != label and (types.is_integer(f.type) or types.is_floating(f.type))
            ]
            if not numbers:
                raise AuguryError(f"the shard {flat(path)} has no column of numbers")
            rows = parquet.read_metadata(path).num_rows
            return cls(path, rows, label, tuple(numbers))

    def labels(self) -> np.ndarray:
        with named(self.path):
            from pyarrow import parquet

            return parquet.read_table(self.path, columns=[self.label])[0].to_numpy()

    def _take(self, rows: Rows) -> np.ndarray:
        from pyarrow import parquet

        wanted = np.arange(self.rows)[rows]
        file = parquet.ParquetFile(self.path)
        parts, first = [], 0
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            inside = wanted[(wanted >= first) & (wanted < first + count)] - first
            if len(inside):
                table = file.read_row_group(group, columns=list(self.columns)).take(inside)
                columns = [table[name].to_numpy() for name in self.columns]
                parts.append(np.column_stack(columns).astype(np.float32))
            first += count
        return np.concatenate(parts)


def number_of(path: Path) -> str | None:
    """Return the number that a file's name ends in, which tells it from the other shards."""
    found = _NUMBERED.search(path.stem)
    return None if found is None else found.group()


def read_parts(parts: tuple[Part, ...], request: Request) -> Source:
    """Read the examples of shards that are kept, and no others."""
    y = np.concatenate([part.labels() for part in parts])
    labels, kept, notes = select(y, len(y), parts[0].class_names(), request)
    ends = np.cumsum([part.rows for part in parts])
    rows = np.arange(len(y)) if kept is None else kept
    split = np.split(rows, np.searchsorted(rows, ends)[:-1])
    x = [
        part.take(mine - (end - part.rows))
        for part, mine, end in zip(parts, split, ends, strict=True)
        if len(mine)
    ]
    columns = getattr(parts[0], "columns", ())
    return Source(
        np.concatenate(x),
        labels,
        notes=tuple(notes),
        index=kept,
        total=len(y),
        columns=tuple((name, None) for name in columns),
        label=getattr(parts[0], "label", None),
    )
