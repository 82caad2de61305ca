"""Which files of a directory are the shards of one data set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from augury._base.errors import AuguryError
from augury._base.text import flat
from augury.data.readers.npy import labels_beside
from augury.data.readers.part_images import archives_of, folder_parts
from augury.data.readers.parts import NpyPart, NpzPart, ParquetPart, Part, number_of
from augury.data.readers.tree import find_files
from augury.data.source import Request

_KINDS: dict[str, Any] = {
    ".npy": NpyPart, ".npz": NpzPart, ".parquet": ParquetPart, ".tar": None
}  # fmt: skip


def shard_files(path: Path) -> list[Path]:
    """Return the numbered shards of a directory, in the order of their names; none if it has none.

    Two or more files whose names end in a number are shards: of the format that most have.
    """
    if not path.is_dir():
        return []
    with os.scandir(path) as entries:  # listed once; a name alone says what a file is
        names = sorted(entry.name for entry in entries)
    found = [path / name for name in names if Path(name).suffix in _KINDS and number_of(Path(name))]
    by_kind = {suffix: [p for p in found if p.suffix == suffix] for suffix in _KINDS}
    by_kind[".npy"] = [p for p in by_kind[".npy"] if labels_beside(p) is not None]
    most = max(by_kind.values(), key=len)
    return most if len(most) > 1 else []


def find_parts(path: Path, request: Request) -> tuple[Part, ...] | None:
    """Return the shards of a directory, opened; None if it has none."""
    found = shard_files(path)
    return _open(found, found[0].suffix, request) if found else None


def parts_of(path: Path, request: Request) -> tuple[Part, ...]:
    """Return one file, or the images of a directory, as parts."""
    if path.is_dir():
        return folder_parts(path, find_files(path, str(path)), request)
    if path.suffix not in _KINDS:
        raise AuguryError(
            f"{flat(path)} cannot be read in shards: expected .npy, .npz, .parquet or .tar files, "
            "or a directory of them or of images"
        )
    return _open([path], path.suffix, request)


def _open(paths: list[Path], suffix: str, request: Request) -> tuple[Part, ...]:
    if suffix == ".tar":
        return archives_of(paths, request)
    return tuple(_KINDS[suffix].open(path, request) for path in paths)
