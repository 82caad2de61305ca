"""Data by name or path: its format is recognised and its reader called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from augury._base.errors import AuguryError
from augury._base.text import did_you_mean, flat, listed
from augury.data.readers.archive import is_archive, read_archive
from augury.data.readers.cifar import has_test_part, is_cifar, read_cifar
from augury.data.readers.embedded import EMBEDDED, read_embedded
from augury.data.readers.find_parts import find_parts
from augury.data.readers.folder import read_folder
from augury.data.readers.idx import (
    find_test_images,
    find_training_images,
    looks_like_idx,
    read_idx_pair,
)
from augury.data.readers.npy import find_examples, has_part, read_npy
from augury.data.readers.npz import read_npz
from augury.data.readers.parts import read_parts
from augury.data.readers.table import TABLES, read_table
from augury.data.readers.tree import TRAIN
from augury.data.readers.ucr import find_series, is_ucr_text, read_ts, read_ucr_text
from augury.data.source import Request, Source

_FORMATS = (
    "a directory with one sub-directory of images or recordings per class or a zip or tar archive "
    "of one, an .npz or .npy file, IDX files, CIFAR's Python batches, series of the UCR archive "
    "(.ts, .tsv), or a table (.csv, .tsv, .parquet)"
)


def read_path(source: str | Path, request: Request) -> tuple[str, Source]:
    """Return the name of the data, and the data as it is."""
    if str(source) in EMBEDDED:
        _refuse(request, "label", "size")
        return str(source), read_embedded(str(source))
    try:
        path = Path(source).expanduser()
    except RuntimeError:  # ~name, where no user has that name
        path = Path(source)
    if not path.exists():
        raise _missing(path)
    if not (path.is_dir() or path.is_file()):  # to open a pipe may wait for ever
        raise AuguryError(
            f"{flat(path)} is neither a file nor a directory; write what a pipe or a device gives "
            "to a file first"
        )
    found = _read_directory(path, request) if path.is_dir() else _read_file(path, request)
    return path.name or path.resolve().name, found


def _read_directory(path: Path, request: Request) -> Source:
    parts = find_parts(path, request)
    if parts is not None and not request.new:
        return read_parts(parts, request)
    _refuse(request, "label")
    test_images = find_test_images(path) if request.new else None
    images = test_images or find_training_images(path)
    if images is not None:
        _refuse(request, "size")
        found = read_idx_pair(images, new=request.new)
        return _noted(found, request, test=test_images is not None)
    if is_cifar(path):
        _refuse(request, "size")
        test = request.new and has_test_part(path)
        return _noted(read_cifar(path, test=test), request, test=test)
    series = find_series(path, new=request.new)
    if series is not None:
        return _read_file(series, request)
    examples = find_examples(path, new=request.new)
    if examples is not None:
        _refuse(request, "size")
        found = read_npy(examples, request)
        train = request.new and has_part(examples, TRAIN)
        note = f"{flat(examples.name)} was read: the directory has no test part"
        return replace(found, notes=(*found.notes, note)) if train else found
    return read_folder(path, request)


def _noted(found: Source, request: Request, *, test: bool) -> Source:
    """Add which images of a directory were read as new ones."""
    if not request.new:
        return found
    note = (
        "the directory's test images were read, not its training images"
        if test
        else "the directory's training images were read: it has no test images"
    )
    return replace(found, notes=(*found.notes, note))


def _read_file(path: Path, request: Request) -> Source:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        if suffix == ".tsv" and request.label is None and is_ucr_text(path):
            _refuse(request, "size")
            return read_ucr_text(path, request)
        return read_table(path, request)
    _refuse(request, "label")
    if suffix == ".ts":
        _refuse(request, "size")
        return read_ts(path, request)
    if is_archive(path):
        return read_archive(path, request)
    _refuse(request, "size")
    if suffix == ".npy":
        return read_npy(path, request)
    if suffix == ".npz":
        return read_npz(path, new=request.new, group=request.group)
    if looks_like_idx(path):
        return read_idx_pair(path, new=request.new)
    raise AuguryError(f"cannot tell what {flat(path)} is: expected {_FORMATS}")


def _refuse(request: Request, *options: str) -> None:
    """Raise if an option came that this format has no use for."""
    if "label" in options and request.label is not None:
        raise AuguryError("a label is only for tables (.csv, .tsv, .parquet); remove it here")
    if "size" in options and request.size is not None:
        raise AuguryError("a size is only for images in separate files; remove it here")


def _missing(path: Path) -> AuguryError:
    folder = path.parent
    beside = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
    if path.suffix or len(path.parts) > 1:
        hint = did_you_mean(path.name, beside) or "; check the path"
        return AuguryError(f"there is no file or directory {flat(path)}{hint}")
    hint = did_you_mean(path.name, [*EMBEDDED, *beside])
    known = f"an embedded name ({listed(EMBEDDED)}) or the path of {_FORMATS}"
    said = f"{hint} Expected {known}" if hint else f"; expected {known}"
    return AuguryError(f"unknown data {path.name!r}{said}")
