"""NumPy's ``.npz`` archives, read without pickle and not before their headers are checked."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import cause, flat, listed
from augury.data.limits import check_bytes
from augury.data.source import Source

# Names that are looked for, best first, whatever their case.
_X = ("x_train", "train_x", "train_images", "train_data", "x", "images", "data")
_Y = ("y_train", "train_y", "train_labels", "train_targets", "y", "labels", "targets")
_TEST_X, _TEST_Y = (
    [name.replace("train", "test") for name in known if "train" in name] for known in (_X, _Y)
)


def read_npz(path: Path, *, new: bool = False, group: str | None = None) -> Source:
    """Read the training examples and labels of an archive.

    With `new`, read its test examples where it has any, and labels only where they are there.
    `group` is the array that says which examples belong together.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            if new:
                x, y = _find_new(names, path)
            else:
                x, y = _find(names, _X, path, "examples"), _find(names, _Y, path, "labels")
            if group is not None and group not in names:
                raise AuguryError(
                    f"{flat(path)} has no array {flat(group)!r}; its arrays are {listed(names)}"
                )
            wanted = (x, y, group)
            arrays = [None if name is None else _read(archive, name, path) for name in wanted]
    except AuguryError:
        raise
    except Exception as error:  # a damaged archive can make zipfile and NumPy raise anything
        raise AuguryError(_explain(path, error)) from error
    rest = [name for name in names if name not in wanted]
    used = listed([x] if y is None else [x, y])
    note = f"of the archive, {used} {'was' if y is None else 'were'} used and {listed(rest)} not"
    assert arrays[0] is not None
    return Source(arrays[0], arrays[1], notes=(note,) if rest else (), groups=arrays[2])


def _find_new(names: Sequence[str], path: Path) -> tuple[str, str | None]:
    if len(names) == 1:
        return names[0], None
    test = _first(names, _TEST_X)
    x = test or _find(names, _X, path, "examples")
    return x, _first(names, _TEST_Y if test else _Y)


def _first(names: Sequence[str], known: Sequence[str]) -> str | None:
    lower = {name.lower(): name for name in names}
    return next((lower[candidate] for candidate in known if candidate in lower), None)


def _find(names: Sequence[str], known: Sequence[str], path: Path, what: str) -> str:
    found = _first(names, known)
    if found is not None:
        return found
    raise AuguryError(
        f"{flat(path)} has no {what}: expected arrays x and y, or x_train and y_train, "
        f"and found {listed(names) or 'none'}"
    )


def _read(archive: zipfile.ZipFile, name: str, path: Path) -> np.ndarray:
    """Read one array; its type and size are known from its header before its values are."""
    member = name + ".npy" if name + ".npy" in archive.namelist() else name
    what = f"the array {flat(name)} of {flat(path)}"
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = header(stream)
    if any(type(side) is not int or side < 0 for side in shape):
        raise AuguryError(f"{what} has the shape {flat(shape)[:80]}; save it again")
    if dtype.hasobject:
        raise AuguryError(
            f"{what} holds a pickle (dtype {dtype}), which is not read since it could run code; "
            "save it as numbers, or as words with astype(str)"
        )
    check_bytes(math.prod(shape) * dtype.itemsize, what, "save fewer examples")
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _explain(path: Path, error: Exception) -> str:
    with open(path, "rb") as file:
        start = file.read(4)
    if start[:2] == b"PK":
        return f"{flat(path)} is damaged or cut short ({cause(error)}); copy or save it again"
    if start[:1] == b"\x80":
        return (
            f"{flat(path)} is a pickle, not an .npz archive, and is not read since it could run "
            "code; save it with numpy.savez(path, x=x, y=y)"
        )
    return f"{flat(path)} is not an .npz archive; save it with numpy.savez(path, x=x, y=y)"
