"""A zip or tar archive of a directory of images or recordings: unpacked, then read."""

from __future__ import annotations

import os
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO

from augury._base.errors import AuguryError
from augury._base.text import cause, count, flat
from augury.data.limits import MOST_BYTES
from augury.data.readers.folder import read_folder
from augury.data.readers.images import EXTENSIONS
from augury.data.readers.recordings import SOUNDS
from augury.data.source import Request, Source

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_MOST_FILES = 10_000_000
_PIECE = 1 << 20


def is_archive(path: Path) -> bool:
    """Return whether a file's name says that it is an archive."""
    return path.name.lower().endswith(ARCHIVES)


def read_archive(path: Path, request: Request) -> Source:
    """Unpack the images and recordings of an archive into a temporary directory and read that.

    Nothing is written outside of it: a name with ``..``, an absolute one, or a link raises.
    """
    with tempfile.TemporaryDirectory(prefix="augury-") as temporary:
        root = Path(temporary)
        try:
            others = _unpack(path, root)
        except (AuguryError, OSError, MemoryError):
            raise
        except Exception as error:  # a damaged archive can make its reader raise anything
            raise AuguryError(
                f"{flat(path)} is damaged or cut short ({cause(error)}); copy it again"
            ) from error
        found = read_folder(_inner(root), request, shown=str(path))
    if others:
        left = sum(others.values())
        was = "was" if left == 1 else "were"
        note = f"{count(left, 'file')} of other kinds in the archive {was} not read"
        found = replace(found, notes=(*found.notes, note))
    return found


def _unpack(path: Path, root: Path) -> Counter[str]:
    """Write images and recordings below `root`; return how many others there are, by suffix."""
    others: Counter[str] = Counter()
    room = MOST_BYTES
    members = _zip(path) if path.suffix.lower() == ".zip" else _tar(path)
    for number, (name, stream) in enumerate(members):
        if number >= _MOST_FILES:
            raise AuguryError(f"{flat(path)} holds more than {_MOST_FILES:,} files; unpack it")
        parts = _parts(name, path)
        suffix = os.path.splitext(name)[1].lower()
        if not parts or any(part.startswith((".", "__MACOSX")) for part in parts):
            continue
        if suffix not in (*EXTENSIONS, *SOUNDS):
            others[suffix] += 1
            continue
        target = root.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "wb") as file:
            while piece := stream.read(_PIECE):
                room -= len(piece)
                if room < 0:
                    raise AuguryError(
                        f"{flat(path)} unpacks to more than {MOST_BYTES >> 30} GiB; unpack it "
                        "yourself and pass the directory"
                    )
                file.write(piece)
    return others


def _parts(name: str, path: Path) -> tuple[str, ...]:
    """Return the parts of a member's path; raise if it leads out of the archive."""
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or "\0" in name or (name[1:2] == ":"):
        raise AuguryError(
            f"{flat(path)} was rejected: its member {flat(name)} points outside of the archive; "
            "use only archives you trust"
        )
    return pure.parts


def _zip(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                with archive.open(member) as stream:
                    yield member.filename, stream


def _tar(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            if member.issym() or member.islnk():
                raise AuguryError(
                    f"{flat(path)} was rejected: its member {flat(member.name)} is a link; unpack "
                    "it yourself and pass the directory"
                )
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                with stream:
                    yield member.name, stream


def _inner(root: Path) -> Path:
    """Return the directory that holds the classes: archives often wrap it in another."""
    while True:
        inside = list(root.iterdir())
        if len(inside) != 1 or not inside[0].is_dir():
            return root
        below = [p for p in inside[0].iterdir() if p.is_dir()]
        if not below:  # the only class
            return root
        root = inside[0]
