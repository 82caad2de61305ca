"""A directory with one sub-directory of images or recordings per class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat, listed
from augury.data.groups import match_groups
from augury.data.labels import Labels
from augury.data.limits import check_bytes
from augury.data.readers.bad import BadFiles, Unreadable, relative
from augury.data.readers.images import Header, decode, read_header
from augury.data.readers.sounds import read_sounds
from augury.data.readers.tree import find_files
from augury.data.sampling import select
from augury.data.sizes import default_side
from augury.data.source import Request, Source

_LARGE = 2 << 30  # bytes of pixels past which images of one size are made smaller too


def read_folder(path: Path, request: Request, shown: str | None = None) -> Source:
    """Read images or recordings, each of the class that its sub-directory names.

    New ones may be loose. Where there are both, those that are more are read.

    Parameters
    ----------
    path
        The directory.
    request
        What to read.
    shown
        What to call the directory in messages, where that is not its path.
    """
    tree = find_files(path, shown or str(path), new=request.new)
    y = None if tree.names is None else np.array(tree.y)
    if tree.media.noun == "recording":
        if request.size is not None:
            raise AuguryError(f"a size is for images, and {flat(path)} holds recordings; drop it")
        read = read_sounds
    else:
        read = read_images
    return read(path, tree.files, y, tree.names, request, tree.notes, shown or str(path))


def read_images(
    root: Path,
    files: Sequence[Path],
    y: np.ndarray | None,
    names: Sequence[str] | None,
    request: Request,
    notes: Sequence[str],
    shown: str,
    groups: np.ndarray | None = None,
) -> Source:
    """Read image files with labels, or without where they are new.

    Those to keep are chosen first; their headers are looked at; then they are decoded, two at a
    time, into one array of bytes.
    """
    notes, total = list(notes), len(files)
    if groups is None and request.group is not None:
        groups = match_groups(request.group, [relative(file, root) for file in files])
    classes = None if names is None else tuple(names)
    labels: Any = y
    if y is not None and not request.new:
        labels, kept, left_out = select(y, len(files), classes, request)
        notes += left_out
        if kept is not None:
            files = [files[i] for i in kept]
            groups = None if groups is None else groups[kept]
    bad = BadFiles(root, shown, request.skip_bad, "image")

    headers: dict[int, Header] = {}
    for i, file in enumerate(files):
        try:
            headers[i] = read_header(file)
        except Unreadable as error:
            bad.add(file, error)
    if not headers:
        raise AuguryError(f"none of the {len(files):,} images in {flat(shown)} can be read")
    grey = all(header.grey for header in headers.values())
    size = request.size
    if request.like is not None and request.like.kind == "image":
        channels, *model = request.like.shape
        size = size or (model[0], model[1])
        if channels == 1 and not grey:
            notes.append("images in colour were made grey, as the model's are")
        grey = grey if channels not in (1, 3) else channels == 1
    size = _common_size(headers, size, 1 if grey else 3, notes)
    notes += _describe(headers.values())
    pixels, good = _decode(files, list(headers), grey, size, request, bad, shown)
    notes += bad.notes()
    rows = np.array(list(headers))[good]
    if labels is not None:
        labels = labels.take(rows) if isinstance(labels, Labels) else labels[rows]
    groups = None if groups is None else groups[rows]
    return Source(pixels, labels, classes, "image", notes=tuple(notes), total=total, groups=groups)


def _decode(
    files: Sequence[Path],
    rows: list[int],
    grey: bool,
    size: tuple[int, int],
    request: Request,
    bad: BadFiles,
    shown: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Decode images into one array; also return which rows could be."""
    shape = (1 if grey else 3, *size)
    total = len(rows) * int(np.prod(shape))
    check_bytes(total, f"the images of {flat(shown)}", "give a smaller --size")
    pixels = np.empty((len(rows), *shape), dtype=np.uint8)
    good = np.ones(len(rows), dtype=bool)

    def one(row: int) -> Unreadable | None:
        try:
            pixels[row] = decode(files[rows[row]], grey, size)
        except Unreadable as error:
            return error
        return None

    pool = ThreadPoolExecutor(2)
    try:
        for row, failure in enumerate(pool.map(one, range(len(rows)))):
            if failure is not None:
                bad.add(files[rows[row]], failure)
                good[row] = False
            if request.progress is not None:
                request.progress(row + 1, len(rows))
    finally:  # also after Ctrl-C: what has not begun is not waited for
        pool.shutdown(cancel_futures=True)
    if not good.any():
        raise AuguryError(f"none of the {len(rows):,} images in {flat(shown)} can be read")
    return (pixels if good.all() else pixels[good]), good


def _common_size(
    headers: dict[int, Header], size: tuple[int, int] | None, channels: int, notes: list[str]
) -> tuple[int, int]:
    """Return the size that all images get, and note it where it is not their own."""
    counts = Counter(header.size for header in headers.values())
    if size is None:
        height, width = next(iter(counts))
        large = len(headers) * channels * height * width > _LARGE
        if len(counts) == 1 and not large:
            return height, width
        side = default_side([header.size for header in headers.values()])
        what = "large images" if len(counts) == 1 else f"images of {len(counts):,} sizes"
        common = [f"{w} × {h} ({count:,})" for (h, w), count in counts.most_common()]
        notes.append(
            f"{what}, {listed(common, 3)}, were resized to {side} × {side} pixels; choose "
            "another side with --size (size= in Python)"
        )
        return side, side
    if set(counts) != {size}:
        notes.append(f"images were resized to {size[1]} × {size[0]} pixels")
    return size


def _describe(headers: Iterable[Header]) -> list[str]:
    every = list(headers)
    alpha, deep = sum(h.alpha for h in every), sum(h.deep for h in every)
    notes = []
    if alpha:
        notes.append(f"the alpha channel of images was dropped ({alpha:,} of {len(every):,})")
    if deep:
        notes.append(f"images of more than 8 bits were cut to 8 ({deep:,} of {len(every):,})")
    return notes
