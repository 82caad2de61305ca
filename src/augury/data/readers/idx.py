"""IDX files, the format of MNIST, plain or gzipped.

Two zero bytes, a byte for the type, a byte for the number of sides; the sides as big-endian
32-bit numbers; then the values.
"""

from __future__ import annotations

import gzip
import math
import re
import struct
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import cause, flat
from augury.data.limits import check_bytes
from augury.data.source import Source

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_TRAIN_IMAGES = re.compile(r"train-images[-.]idx3-ubyte(\.gz)?")
_TEST_IMAGES = re.compile(r"(t10k|test)-images[-.]idx3-ubyte(\.gz)?")
_GZIP = b"\x1f\x8b"
_MOST_SIDES = 4


def looks_like_idx(path: Path) -> bool:
    """Return whether a file's name or its first bytes say that it is IDX."""
    if re.search(r"idx\d", path.name):
        return True
    try:
        with open(path, "rb") as raw:
            start = _plain(raw).read(4)
    except (OSError, EOFError, zlib.error):
        return False
    return len(start) == 4 and start[:2] == b"\0\0" and start[2] in _TYPES and 1 <= start[3] <= 4


def find_training_images(folder: Path) -> Path | None:
    """Return MNIST's file of training images in a directory, if it is there."""
    return _find(folder, _TRAIN_IMAGES)


def find_test_images(folder: Path) -> Path | None:
    """Return MNIST's file of test images in a directory, if it is there."""
    return _find(folder, _TEST_IMAGES)


def read_idx_pair(images: Path, *, new: bool = False) -> Source:
    """Read a file of examples, and of labels beside it: ``images`` and ``labels`` in its name.

    `new` examples may be without labels.
    """
    try:
        labels = _labels_beside(images)
    except AuguryError:
        if new:
            return Source(read_idx(images), None)
        raise
    return Source(read_idx(images), read_idx(labels))


def read_idx(path: Path) -> np.ndarray:
    """Read one IDX file; never more of it than its header promises."""
    try:
        with open(path, "rb") as raw:
            return _read(_plain(raw), path)
    except (gzip.BadGzipFile, EOFError, zlib.error, struct.error) as error:
        reason = "" if isinstance(error, struct.error) else f" ({cause(error)})"
        raise AuguryError(f"{flat(path)} is damaged or cut short{reason}; copy it again") from None


def _find(folder: Path, names: re.Pattern[str]) -> Path | None:
    return next((p for p in sorted(folder.iterdir()) if names.fullmatch(p.name)), None)


def _plain(raw: IO[bytes]) -> IO[bytes]:
    start = raw.read(2)
    raw.seek(0)
    return gzip.GzipFile(fileobj=raw) if start == _GZIP else raw  # type: ignore[return-value]  # a file to read from, both


def _read(stream: IO[bytes], path: Path) -> np.ndarray:
    magic = stream.read(4)
    if len(magic) == 4 and (magic[:2] != b"\0\0" or magic[2] not in _TYPES or not magic[3]):
        raise AuguryError(
            f"{flat(path)} is not an IDX file: it starts with {magic.hex()}, where 0000 and a type "
            "were expected (00000803 for MNIST's images)"
        )
    _, _, code, sides = struct.unpack("4B", magic)
    if sides > _MOST_SIDES:
        raise AuguryError(
            f"{flat(path)} has {sides} dimensions in its header; expected 1 to {_MOST_SIDES}"
        )
    shape = struct.unpack(f">{sides}I", stream.read(4 * sides))
    dtype = np.dtype(_TYPES[code])
    promised = math.prod(shape) * dtype.itemsize
    check_bytes(promised, path, "give a smaller file")
    values = np.empty(promised, dtype=np.uint8)
    filled = 0
    while filled < promised:
        # A megabyte at a time: memory is touched only as far as the file really reaches.
        chunk = stream.read(min(1 << 20, promised - filled))
        if not chunk:
            raise AuguryError(
                f"{flat(path)} is cut short: its header announces {promised:,} bytes of values "
                f"but it has {filled:,}; copy it again"
            )
        values[filled : filled + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
        filled += len(chunk)
    if stream.read(1):
        raise AuguryError(
            f"{flat(path)} has more than the {promised:,} bytes that its header announces"
        )
    return values.view(dtype).reshape(shape)


def _labels_beside(images: Path) -> Path:
    name = images.name.replace("images", "labels").replace("idx3", "idx1")
    if name == images.name:
        raise AuguryError(
            f"cannot tell which labels belong to {flat(images)}; name the files as MNIST does, "
            "train-images-idx3-ubyte and train-labels-idx1-ubyte, and give the first"
        )
    plain = name.removesuffix(".gz")
    for candidate in (name, plain, plain + ".gz"):
        if images.with_name(candidate).is_file():
            return images.with_name(candidate)
    raise AuguryError(
        f"there are no labels next to {flat(images)}: expected the file {flat(name)} there"
    )
