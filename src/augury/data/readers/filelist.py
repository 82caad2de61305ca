"""A table that lists files of images or recordings, with a label for each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat, listed
from augury.data.readers.columns import column_of
from augury.data.readers.folder import read_images
from augury.data.readers.images import EXTENSIONS
from augury.data.readers.listing import Listing
from augury.data.readers.recordings import SOUNDS
from augury.data.readers.sounds import read_sounds
from augury.data.source import Request, Source

if TYPE_CHECKING:
    import pandas as pd

_KINDS = {"image": EXTENSIONS, "recording": SOUNDS}


def find_files_column(frame: pd.DataFrame, path: Path, request: Request) -> str | None:
    """Return the column, other than the label, whose words all end as files of one kind do.

    Raise where most words of a column are such files and a few are not.
    """
    found = {
        str(name): [_name_of(cell) for cell in frame[name].tolist()]
        for name in frame.columns
        if str(name) != request.label and frame[name].ndim == 1 and len(frame)
    }
    files = next((name for name, words in found.items() if _kind_of(words) is not None), None)
    if files is None and not (request.like is not None and request.like.columns):
        for name, words in found.items():
            _check_most(name, words, path)
    return files


def _name_of(cell: object) -> str:
    """Return a cell as the name of a file, without the spaces around it."""
    return cell.strip() if isinstance(cell, str) else ""


def _kind_of(names: list[str]) -> str | None:
    """Return what all the files of a list hold, by their names; None if that differs."""
    found = {os.path.splitext(name)[1].lower() for name in names}
    return next((kind for kind, known in _KINDS.items() if found <= set(known)), None)


def _check_most(column: str, names: list[str], path: Path) -> None:
    """Raise if most of a column are files of one kind that are there, but not all."""
    for kind, known in _KINDS.items():
        named = [name.lower().endswith(known) for name in names]
        if 2 * sum(named) <= len(names):
            continue
        root = _root(path.parent, names[named.index(True)])
        there = sum(
            (root / name).is_file() for name, is_one in zip(names, named, strict=True) if is_one
        )
        if 2 * there > len(names):
            row = named.index(False)
            cell = f"is {flat(names[row])[:40]!r}" if names[row] else "is empty"
            raise AuguryError(
                f"row {row + 1} (without the header) of {flat(path)} names no {kind} in column "
                f"{flat(column)!r}, as {there:,} others do: the cell {cell}; correct or remove "
                "this row, or remove the column to read the others as a table"
            )


def read_list(
    frame: pd.DataFrame, files: str, label: str | None, request: Request, path: Path
) -> Source:
    """Read what a column names, in the table's directory or in one inside it."""
    names = [_name_of(cell) for cell in column_of(frame, files, str(path))]
    root = _root(path.parent, names[0])
    paths = [root / name for name in names]
    missing = [name for name, file in zip(names, paths, strict=True) if not file.is_file()]
    if missing:
        raise AuguryError(
            f"{len(missing):,} of the {len(names):,} files that {flat(path)} lists are not in "
            f"{flat(root)}: {listed(missing, 3)}; correct their names or remove their rows"
        )
    group = request.group if request.group in frame.columns else None
    used = (files, label, group)
    others = [str(column) for column in frame.columns if str(column) not in used]
    noun = _kind_of(names) or "image"
    notes = [f"the {noun}s that the column {flat(files)} lists were read"]
    if others:
        notes.append(f"other columns were not used: {listed(others)}")
    y = None if label is None else np.asarray(column_of(frame, label, str(path)), dtype=object)
    groups = None if group is None else np.asarray(column_of(frame, group, str(path)), object)
    listing = Listing(root, str(path), noun, paths, y, notes=notes, groups=groups)
    return read_sounds(listing, request) if noun == "recording" else read_images(listing, request)


def _root(beside: Path, first: str) -> Path:
    """Return the directory that the names start from: the table's, or one inside it."""
    inside = sorted(p for p in beside.iterdir() if p.is_dir())
    return next((root for root in (beside, *inside) if (root / first).is_file()), beside)
