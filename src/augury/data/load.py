"""Data by name or path: the format is found out, and its reader called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from augury._base.errors import AuguryError
from augury._base.text import cause, did_you_mean, flat, listed
from augury.data.dataset import Dataset
from augury.data.readers.arrays import as_dataset
from augury.data.readers.cifar import is_cifar, read_cifar
from augury.data.readers.embedded import EMBEDDED, read_embedded
from augury.data.readers.folder import read_folder
from augury.data.readers.idx import find_training_images, looks_like_idx, read_idx_pair
from augury.data.readers.npz import read_npz
from augury.data.readers.source import Source
from augury.data.readers.table import TABLES, read_table

_FORMATS = (
    "an .npz file, a folder with a folder of images a class, IDX files, CIFAR's python batches, "
    "or a table (.csv, .tsv, .parquet)"
)


def load(
    source: str | Path,
    *,
    label: str | None = None,
    size: int | tuple[int, int] | None = None,
    kind: str | None = None,
    max_examples: int | None = None,
    seed: int = 0,
    skip_bad: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Read a dataset from an embedded name or a path; only the training part where there are more.

    Parameters
    ----------
    source
        One of `EMBEDDED`'s names (write ``./digits`` for a folder of that name); or the path of an
        ``.npz`` file, of a folder with a folder of images a class, of an IDX file of images or a
        folder with MNIST's, of a folder with CIFAR's python batches, or of a table.
    label
        The column of a table to predict.
    size
        Height and width for a folder's images, or one number for both.
    kind
        ``"image"``, ``"series"`` or ``"vector"``, where the shape leaves a doubt.
    max_examples
        Keep at most so many, each class in proportion; other images are not even opened.
    seed
        Decides which are kept.
    skip_bad
        Leave out images that cannot be read, with a note, where otherwise they are an error.
    progress
        Called with (done, total) while images are decoded.

    Examples
    --------
    >>> data = load("digits", max_examples=100)
    >>> len(data), data.kind, data.shape
    (100, 'image', (1, 8, 8))
    """
    name, found = read_source(
        source,
        label=label,
        size=size,
        max_examples=max_examples,
        seed=seed,
        skip_bad=skip_bad,
        progress=progress,
    )
    data = as_dataset(
        found.x,
        found.y,
        kind=kind or found.kind,
        classes=found.classes,
        name=name,
        max_examples=max_examples,
        seed=seed,
    )
    return replace(data, notes=(*found.notes, *data.notes))


def read_source(
    source: str | Path,
    *,
    label: str | None = None,
    size: int | tuple[int, int] | None = None,
    max_examples: int | None = None,
    seed: int = 0,
    skip_bad: bool = False,
    progress: Callable[[int, int], None] | None = None,
    like: Mapping[str, Any] | None = None,
) -> tuple[str, Source]:
    """Read data as it is, and give it a name; the parameters are those of `load`.

    `like` is what was kept of the data that a model was fitted on, where this is new data for it:
    that may be without labels, and the test part is read where there is one.
    """
    if not isinstance(source, str | Path):
        raise AuguryError(
            f"augury.load takes a name or a path, not {type(source).__name__}; "
            "for data in memory use augury.as_dataset"
        )
    if str(source) in EMBEDDED:
        _refuse(label=label, size=size)
        name, found = str(source), read_embedded(str(source))
    else:
        path = Path(source).expanduser()
        name = path.name or path.resolve().name
        try:
            if not path.exists():
                raise _missing(path)
            if path.is_dir():
                _refuse(label=label)
                found = _read_folder(path, size, max_examples, seed, skip_bad, progress, like)
            else:
                _refuse(size=size)
                found = _read_file(path, label, like)
        except OSError as error:
            raise AuguryError(f"cannot read {flat(path)}: {cause(error)}") from None
        except MemoryError:
            raise AuguryError(f"{flat(path)} does not fit in memory; give less of it") from None
    return name, found


def _read_folder(
    path: Path,
    size: int | tuple[int, int] | None,
    max_examples: int | None,
    seed: int,
    skip_bad: bool,
    progress: Callable[[int, int], None] | None,
    like: Mapping[str, Any] | None,
) -> Source:
    new = like is not None
    images = find_training_images(path)
    if images is not None:
        _refuse(size=size)
        return _noted(read_idx_pair(images, new=new), new)
    if is_cifar(path):
        _refuse(size=size)
        return _noted(read_cifar(path), new)
    return read_folder(
        path,
        size=_sides(size if size is not None or like is None else like.get("size")),
        max_examples=max_examples,
        seed=seed,
        skip_bad=skip_bad,
        progress=progress,
        new=new,
    )


def _noted(found: Source, new: bool) -> Source:
    note = "the folder's training images were read, not its test images"
    return found._replace(notes=(*found.notes, note)) if new else found


def _read_file(path: Path, label: str | None, like: Mapping[str, Any] | None) -> Source:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return read_table(path, label, like)
    _refuse(label=label)
    if suffix == ".npz":
        return read_npz(path, new=like is not None)
    if looks_like_idx(path):
        return read_idx_pair(path, new=like is not None)
    raise AuguryError(f"cannot tell what {flat(path)} is: expected {_FORMATS}")


def _sides(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    height, width = (size, size) if isinstance(size, int) else size
    if min(height, width) < 1:
        raise AuguryError(f"a size is a whole number of pixels, 1 or more, not {size}")
    return int(height), int(width)


def _refuse(label: object = None, size: object = None) -> None:
    """Say so when an option came that this format has no use for."""
    if label is not None:
        raise AuguryError("a label is for tables (.csv, .tsv, .parquet) only; leave it out here")
    if size is not None:
        raise AuguryError("a size is for folders of images only; leave it out here")


def _missing(path: Path) -> AuguryError:
    folder = path.parent
    beside = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
    if path.suffix or len(path.parts) > 1:
        hint = did_you_mean(path.name, beside) or "; check the path"
        return AuguryError(f"there is no file or folder {flat(path)}{hint}")
    hint = did_you_mean(path.name, [*EMBEDDED, *beside]) or ";"
    return AuguryError(
        f"unknown data {path.name!r}{hint} Expected an "
        f"embedded name ({listed(EMBEDDED)}) or the path of {_FORMATS}"
    )
