"""A directory with one sub-directory of images or recordings per class."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat, listed
from augury.data.limits import check_bytes
from augury.data.readers.images import Header, decode, read_header
from augury.data.readers.listing import Listing, Reading
from augury.data.readers.sounds import read_sounds
from augury.data.readers.tree import find_files
from augury.data.sizes import default_side
from augury.data.source import Request, Source

_LARGE = 2 << 30  # bytes of pixels past which images of one size are made smaller too


def read_folder(path: Path, request: Request, shown: str | None = None) -> Source:
    """Read images or recordings, each of the class that its sub-directory names.

    New ones need no sub-directories. If there are both images and recordings, the more numerous
    are read.

    Parameters
    ----------
    path
        The directory.
    request
        What to read.
    shown
        What to call the directory in messages, where that is not its path.
    """
    shown = shown or str(path)
    tree = find_files(path, shown, new=request.new)
    y, classes = (None, None) if tree.names is None else (np.array(tree.y), tuple(tree.names))
    listing = Listing(path, shown, tree.media.noun, tree.files, y, classes, tree.notes)
    if tree.media.noun == "image":
        return read_images(listing, request)
    if request.size is not None:
        raise AuguryError(f"a size is for images, but {flat(path)} holds recordings; drop it")
    return read_sounds(listing, request)


def read_images(listing: Listing, request: Request) -> Source:
    """Read image files with labels, or without where they are new.

    Those to keep are chosen first; their headers are looked at; then they are decoded, two at a
    time, into one array of bytes.
    """
    reading = Reading(listing, request)
    headers, notes = reading.open(read_header), reading.notes
    grey = all(header.grey for header in headers.values())
    size = request.size
    if request.like is not None and request.like.kind == "image":
        channels, *model = request.like.shape
        size = size or (model[0], model[1])
        if channels == 1 and not grey:
            notes.append("colour images were converted to greyscale, like those of the model")
        grey = grey if channels not in (1, 3) else channels == 1
    size = _common_size(headers, size, 1 if grey else 3, notes)
    notes += _describe(headers.values())
    pixels, numbers = _decode(reading, list(headers), grey, size)
    return Source(
        pixels,
        reading.take_labels(numbers),
        listing.classes,
        "image",
        notes=(*notes, *reading.bad.notes()),
        total=len(listing.files) - len(reading.bad.names),
        groups=reading.take_groups(numbers),
        files=reading.take_names(numbers),
    )


def _decode(
    reading: Reading, numbers: list[int], grey: bool, size: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Decode images into one array; also return the numbers of those that can be decoded."""
    shape = (len(numbers), 1 if grey else 3, *size)
    images = f"the images of {flat(reading.listing.shown)}"
    check_bytes(math.prod(shape), images, "give a smaller --size")
    pixels = np.empty(shape, dtype=np.uint8)
    rows = {number: row for row, number in enumerate(numbers)}

    def one(number: int) -> None:
        pixels[rows[number]] = decode(reading.files[number], grey, size)

    good = [number for number, _ in reading.read(numbers, one)]
    if len(good) < len(numbers):
        pixels = pixels[[rows[number] for number in good]]
    return pixels, np.array(good)


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
        notes.append(f"images with more than 8 bits were reduced to 8 ({deep:,} of {len(every):,})")
    return notes
