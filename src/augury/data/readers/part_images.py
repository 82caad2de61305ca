"""Images in parts: WebDataset's tar archives, and files of a directory, a few thousand each."""

from __future__ import annotations

import functools
import json
import os
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat
from augury.data.readers.images import EXTENSIONS, decode, decode_bytes, read_header
from augury.data.readers.parts import Part, Rows, named
from augury.data.readers.pictures import is_grey, to_pixels
from augury.data.readers.tree import Tree
from augury.data.sizes import default_side
from augury.data.source import Request

_LABELS = (".cls", ".json")
_FILES = 4096  # images of a directory that are one part
_LOOKED_AT = 64  # images of a directory whose headers decide about the size of all
_THREADS = 2


@dataclass(frozen=True)
class TarPart(Part):
    """An uncompressed tar archive as WebDataset has them: ``0001.png`` beside ``0001.cls``.

    Its members are listed by their headers; images are read at their offsets. The label is the
    text of ``.cls``, or ``label`` in ``.json``.
    """

    path: Path
    rows: int
    size: tuple[int, int]
    grey: bool

    @classmethod
    def open(cls, path: Path, request: Request, like: Part | None = None) -> TarPart:
        """List an archive; the size of images is that of the first of all, or the one asked for."""
        with named(path):
            members = _members(str(path), os.stat(path).st_mtime_ns)
            if isinstance(like, TarPart):
                return cls(path, len(members), like.size, like.grey)
            first = decode_bytes(_slice(path, members[0][0]))
            width, height = first.size
            return cls(path, len(members), request.size or (height, width), is_grey(first))

    def labels(self) -> np.ndarray:
        with named(self.path), open(self.path, "rb") as file:
            return np.array([_label(file, *label) for _, label in self._members()])

    def _take(self, rows: Rows) -> np.ndarray:
        members = self._members()
        wanted = np.arange(self.rows)[rows]
        with open(self.path, "rb") as file:
            encoded = []
            for row in wanted:
                start, length = members[row][0]
                file.seek(start)
                encoded.append(file.read(length))
        return _decode(
            len(wanted), lambda k: to_pixels(decode_bytes(encoded[k]), self.grey, self.size)
        )

    def _members(self) -> list[tuple[tuple[int, int], tuple[int, int, str]]]:
        return _members(str(self.path), os.stat(self.path).st_mtime_ns)


@functools.lru_cache(maxsize=4)
def _members(path: str, changed: int) -> list[tuple[tuple[int, int], tuple[int, int, str]]]:
    """Return where each example's image and label lie in an archive: (start, length)."""
    images: dict[str, tuple[int, int]] = {}
    labels: dict[str, tuple[int, int, str]] = {}
    with tarfile.open(path, "r:") as archive:
        for member in archive:
            folder, name = os.path.split(member.name)
            key, suffix = name.split(".", 1) if "." in name else (name, "")
            key, suffix = os.path.join(folder, key), f".{suffix.lower()}"
            place = (member.offset_data, member.size)
            if suffix in EXTENSIONS:
                images[key] = place
            elif suffix in _LABELS:
                labels.setdefault(key, (*place, suffix))
    alone = [key for key in images if key not in labels]
    if alone or not images:
        what = f"no label for {flat(alone[0])}" if alone else "no image"
        raise AuguryError(
            f"the shard {flat(path)} has {what}: expected pairs as 0001.png and 0001.cls"
        )
    return [(place, labels[key]) for key, place in images.items()]


def _slice(path: Path, place: tuple[int, int]) -> bytes:
    with open(path, "rb") as file:
        file.seek(place[0])
        return file.read(place[1])


def _label(file: IO[bytes], start: int, length: int, suffix: str) -> int | str:
    file.seek(start)
    text = file.read(length).decode()
    value = json.loads(text)["label"] if suffix == ".json" else text.strip()
    return int(value) if str(value).isdecimal() else value


@dataclass(frozen=True)
class FilesPart(Part):
    """Image files of a directory, decoded when they are asked for."""

    path: Path
    names: tuple[str, ...] = field(repr=False)
    y: np.ndarray = field(repr=False)
    classes: tuple[str, ...]
    size: tuple[int, int]
    grey: bool

    @property
    def rows(self) -> int:  # type: ignore[override]  # a property in place of an attribute
        """How many files there are."""
        return len(self.names)

    def class_names(self) -> tuple[str, ...]:
        return self.classes

    def labels(self) -> np.ndarray:
        return self.y

    def digest(self) -> str:
        return "\n".join((str(self.path), *self.names))

    def _take(self, rows: Rows) -> np.ndarray:
        wanted = np.arange(self.rows)[rows]

        def one(k: int) -> np.ndarray:
            path = self.path / self.names[wanted[k]]
            with named(path):
                return decode(path, self.grey, self.size)

        return _decode(len(wanted), one)


def folder_parts(root: Path, tree: Tree, request: Request) -> tuple[FilesPart, ...]:
    """Cut the files of a directory into parts; a few headers decide about size and colour."""
    if tree.names is None or tree.media.noun != "image":
        raise AuguryError(
            f"{flat(root)} holds no images in one sub-directory per class; expected "
            f"{flat(root / tree.media.example)}"
        )
    step = max(1, len(tree.files) // _LOOKED_AT)
    headers = []
    for file in tree.files[::step]:
        with named(file):
            headers.append(read_header(file))
    sizes = {header.size for header in headers}
    side = default_side([header.size for header in headers])
    size = request.size or (next(iter(sizes)) if len(sizes) == 1 else (side, side))
    grey = all(header.grey for header in headers)
    names = [os.path.relpath(file, root) for file in tree.files]
    y = np.array(tree.y, dtype=np.int64)
    return tuple(
        FilesPart(
            root, tuple(names[k : k + _FILES]), y[k : k + _FILES], tuple(tree.names), size, grey
        )
        for k in range(0, len(names), _FILES)
    )


def _decode(count: int, one: Callable[[int], np.ndarray]) -> np.ndarray:
    """Decode images into one array, two at a time."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return np.stack(list(pool.map(one, range(count))))


def archives_of(paths: list[Path], request: Request) -> tuple[Part, ...]:
    """Open tar archives; all take the size and colour of the first."""
    first = TarPart.open(paths[0], request)
    return (first, *(TarPart.open(path, request, first) for path in paths[1:]))
