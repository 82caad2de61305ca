"""A folder with a folder of images a class."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat, listed
from augury.data.labels import encode
from augury.data.limits import check_bytes
from augury.data.readers.images import EXTENSIONS, Header, Unreadable, decode, read_header
from augury.data.readers.source import Source
from augury.data.sampling import choose, sample_note

Progress = Callable[[int, int], None]


def read_folder(
    path: Path,
    *,
    size: tuple[int, int] | None = None,
    max_examples: int | None = None,
    seed: int = 0,
    skip_bad: bool = False,
    progress: Progress | None = None,
    new: bool = False,
) -> Source:
    """Read images, the name of each one's folder being its class; `new` ones may be loose.

    Those to keep are chosen first; their headers are looked at; then they are decoded, two at a
    time, into one array of bytes.
    """
    files, y, names, notes = _find(path, new)
    kept = None
    if not new:
        labels = encode(y, len(files), names)
        kept = choose(labels.y, labels.count, max_examples, seed)
    if kept is not None:
        notes.append(sample_note(len(kept), len(files), seed, by_class=True))
        files, y = [files[i] for i in kept], y[kept]
    bad = _Bad(path, skip_bad)

    headers: dict[int, Header] = {}
    for i, file in enumerate(files):
        try:
            headers[i] = read_header(file)
        except Unreadable as error:
            bad.add(file, error)
    if not headers:
        raise AuguryError(f"none of the {len(files):,} images in {flat(path)} can be read")
    size = _common_size(path, headers, size, notes)
    grey = all(header.grey for header in headers.values())
    notes += _describe(headers.values())

    shape = (1 if grey else 3, *size)
    check_bytes(
        len(headers) * int(np.prod(shape)), f"the images of {flat(path)}", "give a smaller --size"
    )
    pixels = np.empty((len(headers), *shape), dtype=np.uint8)
    rows = list(headers)
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
            if progress is not None:
                progress(row + 1, len(rows))
    finally:  # also after Ctrl-C: what has not begun is not waited for
        pool.shutdown(cancel_futures=True)
    if not good.all():
        pixels = pixels[good]
    notes += bad.notes()
    if not names:
        return Source(pixels, None, None, "image", tuple(notes))
    return Source(pixels, y[rows][good], tuple(names), "image", tuple(notes))


class _Bad:
    """Images that cannot be read: the first one stops the reading, unless they are skipped."""

    def __init__(self, folder: Path, skip: bool) -> None:
        self.folder, self.skip = folder, skip
        self.names: list[str] = []

    def add(self, file: Path, error: Unreadable) -> None:
        name = flat(file.relative_to(self.folder))
        if not self.skip:
            raise AuguryError(
                f"cannot read the image {name} in {flat(self.folder)}: {error}; repair or remove "
                "it, or go on without such images by --skip-bad (skip_bad=True in Python)"
            )
        self.names.append(name)

    def notes(self) -> list[str]:
        if not self.names:
            return []
        some = f"{len(self.names):,} image{'s' if len(self.names) > 1 else ''}"
        return [f"{some} could not be read and left out: {listed(self.names, 5)}"]


def _find(path: Path, new: bool) -> tuple[list[Path], np.ndarray, list[str], list[str]]:
    """List the images with their class numbers, in sorted order; without names, if loose."""
    loose, folders = _images(path), _folders(path)
    found = {folder: _images(path / folder) for folder in folders}
    names = [folder for folder in folders if found[folder]]
    expected = f"expected a folder of images for each class, as {flat(path / 'cat' / '1.png')}"
    if not names:
        if loose and new:
            return [path / file for file in loose], np.zeros(len(loose), dtype=int), [], []
        if loose:
            raise AuguryError(
                f"{flat(path)} holds {len(loose):,} loose images without class folders; {expected}"
            )
        if not folders:
            raise AuguryError(f"the folder {flat(path)} has no images; {expected}")
        inner = next((f for f in ("train", "training", *folders) if _has_classes(path / f)), None)
        hint = f"; did you mean {flat(path / inner)}?" if inner else ""
        raise AuguryError(
            f"the folders in {flat(path)} have no images ({' '.join(EXTENSIONS)}); {expected}{hint}"
        )
    notes = []
    if loose:
        notes.append(f"{len(loose):,} images outside of the class folders were left out")
    if len(names) < len(folders):
        empty = [folder for folder in folders if not found[folder]]
        notes.append(f"folders without images were left out: {listed(empty, 5)}")
    files = [path / name / file for name in names for file in found[name]]
    y = np.repeat(np.arange(len(names)), [len(found[name]) for name in names])
    return files, y, names, notes


def _images(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if not entry.name.startswith(".")
            and os.path.splitext(entry.name)[1].lower() in EXTENSIONS
            and entry.is_file()
        )


def _folders(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))


def _has_classes(folder: Path) -> bool:
    return folder.is_dir() and any(_images(folder / inner) for inner in _folders(folder))


def _common_size(
    path: Path,
    headers: dict[int, Header],
    size: tuple[int, int] | None,
    notes: list[str],
) -> tuple[int, int]:
    counts = Counter(header.size for header in headers.values())
    if size is None and len(counts) == 1:
        return next(iter(counts))
    if size is None:
        common = counts.most_common()
        shown = [f"{width} × {height} ({count:,})" for (height, width), count in common]
        raise AuguryError(
            f"the images in {flat(path)} are of {len(counts)} sizes: {listed(shown, 3)}; resize "
            f"them all with --size {min(common[0][0])} (size= in Python), or another number"
        )
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
