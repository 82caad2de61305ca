"""Data as a `Dataset`: read from a path or from objects in memory, then prepared once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.given import as_path
from augury._base.text import flat, listed
from augury.data.clips import check_clip
from augury.data.dataset import Dataset
from augury.data.gaps import fill_gaps
from augury.data.groups import name_groups, number_groups
from augury.data.labels import Labels
from augury.data.layout import arrange, to_array, to_tensor
from augury.data.preparation import Preparation
from augury.data.readers.objects import read_object
from augury.data.readers.paths import read_path
from augury.data.sampling import select
from augury.data.scaling import span
from augury.data.sizes import sides
from augury.data.source import Progress, Request, Source, reading
from augury.data.stream import Shards


def load(
    source: str | Path,
    *,
    label: str | None = None,
    size: int | tuple[int, int] | None = None,
    kind: str | None = None,
    task: str | None = None,
    max_examples: int | None = None,
    seed: int = 0,
    skip_bad: bool = False,
    progress: Progress | None = None,
    group: str | None = None,
    rate: int | None = None,
    seconds: float | None = None,
) -> Dataset:
    """Read a built-in dataset or a path; only the training part if it has several parts.

    Parameters
    ----------
    source
        A name in `EMBEDDED` (write ``./digits`` for a directory of that name), or the path of one
        of the following: a directory with one sub-directory of images or recordings per class, or a
        zip or tar archive of it; an ``.npz`` file; an ``.npy`` file with its labels next to it; an
        IDX file, or a directory with MNIST's IDX files; a directory with CIFAR's Python batches;
        series from the UCR archive (``.ts``, ``.tsv``); a table, which may list image or sound
        files; or a directory of numbered shards (see `open_shards`).
    label
        The column of a table to predict.
    size
        Height and width for images, or one number for both. By default, the size is kept; images of
        different sizes are resized to their median side, at most 64.
    kind
        ``"image"``, ``"sound"``, ``"series"`` or ``"vector"``, if the shape is ambiguous.
    task
        ``"classification"``, ``"regression"`` or ``"multi-label"``; by default, integers and
        strings are classes, and a table of 0 and 1 is multi-label.
    max_examples
        Maximum number of examples, sampled proportionally by class; other images are not opened.
    seed
        Random seed of the sample.
    skip_bad
        Skip images and recordings that cannot be read, with a note, instead of raising an error.
    progress
        Called with (done, total) while images are decoded.
    group
        Which examples belong together and must not be split between training and testing: a column
        of a table, an array of an ``.npz`` file, or a regular expression for file names with one
        group, such as ``"_(.+)_"``.
    rate
        Sample rate in Hz to which recordings are resampled; by default, the most common rate, at
        most 16,000. For waveforms in arrays, their sample rate.
    seconds
        Length of the clips; by default, long enough for 95 % of the recordings, and at most 5.
        Shorter recordings are padded with silence, longer ones give several clips.

    Examples
    --------
    >>> data = load("digits", max_examples=100)
    >>> len(data), data.kind, data.shape
    (100, 'image', (1, 8, 8))
    """
    if not isinstance(source, str | PurePath):
        raise AuguryError(
            f"augury.load takes a name or a path, not {type(source).__name__}; "
            "for data in memory use augury.as_dataset"
        )
    as_path(source)
    check_clip(rate, seconds)
    request = Request(
        label, sides(size), task, max_examples, seed, skip_bad, progress,
        group=group, rate=rate, seconds=seconds,
    )  # fmt: skip
    with reading(source):
        name, found = read_path(source, request)
        return prepare(found, request, name=name, kind=kind)


def as_dataset(
    x: Any,
    y: Any = None,
    *,
    label: str | None = None,
    kind: str | None = None,
    task: str | None = None,
    classes: Sequence[object] | None = None,
    size: int | tuple[int, int] | None = None,
    name: str = "data",
    max_examples: int | None = None,
    seed: int = 0,
    groups: Any = None,
    group: str | None = None,
    rate: int | None = None,
    seconds: float | None = None,
) -> Dataset:
    """Convert examples and labels to a checked `Dataset`; its notes list the changes.

    Arrays of bytes share their memory with the result. Pixels outside [0, 1] are scaled by the
    range of the whole array; columns of vectors and channels of series are standardised to mean 0
    and variance 1; a real target is centred, as K_Y = yyᵀ requires.

    Parameters
    ----------
    x
        Images N × height × width, with channels first or last; series N × channels × length, or a
        list of arrays channels × length; vectors N × d, as NumPy arrays, tensors or lists. A pandas
        or polars frame, including sktime's frames of series. A torch, torchvision or Hugging Face
        dataset, a ``DataLoader``, or any other sequence or iterable of pairs (x, y) with arrays,
        tensors or Pillow images. A path or a name, as for `load`. A `Dataset`, or the result of
        `open_shards`.
    y
        Labels: integers, strings or booleans for classes, floats for a real target.
    label
        The column of a frame, or the entry of a dataset's examples, that is the label.
    kind
        ``"image"``, ``"sound"``, ``"series"`` or ``"vector"``, if the shape is ambiguous.
    task
        ``"classification"``, ``"regression"`` or ``"multi-label"``; by default, integers and
        strings are classes, and a table of 0 and 1 is multi-label.
    classes
        Names of the classes 0, 1, …
    size
        Height and width for Pillow images, or one number for both; see `load`.
    name
        Name of the data in results.
    max_examples
        Maximum number of examples, sampled proportionally by class.
    seed
        Random seed of the sample.
    groups
        The group of each example, such as a speaker or a patient. Examples of the same group are
        never split between training and testing.
    group
        The column of a frame with the groups; for a path, see `load`.
    rate
        Sample rate in Hz of sound, N × samples; for a path, see `load`.
    seconds
        Length of the clips for recordings read from a path; see `load`.

    Examples
    --------
    >>> import numpy as np
    >>> data = as_dataset(np.zeros((4, 8, 8), dtype=np.uint8), ["cat", "dog", "cat", "dog"])
    >>> data.kind, data.shape, data.classes
    ('image', (1, 8, 8), ('cat', 'dog'))
    """
    if isinstance(x, Dataset):
        if any(v is not None for v in (y, label, groups, group)) or kind not in (None, x.kind):
            raise AuguryError(
                f"a Dataset has its own labels, groups and kind ({x.kind}); pass it alone"
            )
        return x if max_examples is None else x.subsample(max_examples, seed)
    if isinstance(x, Shards):
        if any(v is not None for v in (y, label, groups, group)):
            raise AuguryError("shards have their own labels; pass them alone")
        return x.draw(len(x) if max_examples is None else max_examples, seed)
    if isinstance(x, str | PurePath):
        if y is not None or groups is not None:
            what = "labels" if y is not None else "groups"
            raise AuguryError(
                f"{what} were passed with the path {flat(x)}, which has its own; remove them"
            )
        path = x if isinstance(x, str) else Path(x)
        shared: Any = {"kind": kind, "task": task, "max_examples": max_examples, "seed": seed}
        shared |= {"rate": rate, "seconds": seconds}
        return load(path, label=label, size=size, group=group, **shared)
    check_clip(rate, seconds)
    request = Request(label, sides(size), task, max_examples, seed, group=group, rate=rate)
    source = read_object(x, y, request, classes)
    if groups is not None:
        chosen = source.index
        values = to_array(groups, "groups")
        source = replace(source, groups=values if chosen is None else values[chosen])
    return prepare(source, request, name=name, kind=kind)


def prepare(source: Source, request: Request, *, name: str, kind: str | None = None) -> Dataset:
    """Check what a reader returned, fit its preparation and apply it."""
    kind, rate = _kind(source, request, kind)
    x, notes = arrange(source.x, kind)
    if x.ndim == 3:
        x, filled = fill_gaps(x)
        notes += filled
    if source.y is None:
        raise AuguryError("labels are missing: pass y with x, or a dataset of pairs (x, y)")
    if isinstance(source.y, Labels):
        labels, kept, left_out = source.y, None, []
    else:
        asked = replace(request, task=request.task or source.task)
        labels, kept, left_out = select(source.y, len(x), source.classes, asked)
    groups = _groups(source, request, len(x))
    low, high = span(x, source.index)
    total = max(len(x), source.total)
    missing = source.missing
    if kept is not None:
        x, groups = x[kept], None if groups is None else groups[kept]
        missing = None if missing is None else missing[kept]
    fitted = Preparation.fit(x, low, high, labels, rate)
    fitted = replace(fitted, columns=source.columns, label=source.label)
    notes = [*source.notes, *notes, *fitted.notes()]
    if labels.tags is not None:
        notes.append(
            f"each example has any number of {len(labels.tags)} labels: {listed(labels.tags)}"
        )
    elif labels.classes is None:
        notes.append(f"the target is real-valued, with mean {fitted.centre:g}")
    notes += left_out
    y = to_tensor(labels.y if labels.classes is not None else labels.y - fitted.centre)
    numbered = None
    if groups is not None:
        numbered = to_tensor(number_groups(groups, labels))
        count = int(numbered.max()) + 1
        notes.append(f"examples belong to {count:,} groups, which are never split")
    found = to_tensor(fitted.apply(x))
    gone = None if missing is None else to_tensor(missing)
    return Dataset(
        found, y, labels.classes, name, tuple(notes), fitted, total, numbered, gone,
        labels.tags,
    )  # fmt: skip


def _kind(source: Source, request: Request, kind: str | None) -> tuple[str | None, int | None]:
    """Return the kind of data where it is known, and the sample rate of sound."""
    kind = kind or source.kind
    rate = source.rate or request.rate
    if kind is None and rate is not None:
        kind = "sound"
    if kind == "sound" and rate is None:
        raise AuguryError("sound needs its sample rate: give --rate (rate= in Python)")
    if kind != "sound" and source.rate is not None:
        raise AuguryError(f"these are recordings, which are sound and not {kind} data; remove kind")
    if kind != "sound" and rate is not None:
        raise AuguryError(f"a sample rate is only for sound, but this is {kind} data; remove it")
    return kind, rate


def _groups(source: Source, request: Request, n: int) -> np.ndarray | None:
    if source.groups is not None:
        return name_groups(source.groups, n)
    if request.group is None:
        return None
    raise AuguryError(
        f"the group {flat(request.group)!r} cannot be used here: a group is a "
        "column of a table, an array of an .npz file or a pattern for file names; for "
        "data in memory, pass groups="
    )
