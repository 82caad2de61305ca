"""Pickles of plain values and NumPy arrays, read so that none can run code.

A pickle may name any function and call it. Here every name that it may use is one of our own
stand-ins, which build arrays from bytes; any other name is refused.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import cause, flat, kind_of


class _Dtype:
    """Stands for ``numpy.dtype``: keeps the code and the byte order."""

    def __init__(self, code: str | bytes, *_: object) -> None:
        self.code = code.decode("ascii") if isinstance(code, bytes) else str(code)
        self.order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = state[1].decode("ascii") if isinstance(state[1], bytes) else str(state[1])
        self.order = {"|": "="}.get(order, order)

    def real(self) -> np.dtype:
        dtype = np.dtype(self.code)
        if dtype.kind not in "biufSU":
            raise pickle.UnpicklingError(f"arrays of type {self.code} are not read")
        return dtype.newbyteorder(self.order)  # type: ignore[arg-type]  # NumPy checks it


class _Array:
    """Stands for an array that is being rebuilt; `values` once its state has come."""

    values: np.ndarray

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        raw = raw.encode("latin1") if isinstance(raw, str) else raw
        self.values = _shaped(raw, dtype, shape, "F" if fortran else "C")


def _from_buffer(raw: Any, dtype: _Dtype, shape: tuple[int, ...], order: str) -> _Array:
    array = _Array()
    array.values = _shaped(raw, dtype, shape, order)
    return array


def _shaped(raw: Any, dtype: _Dtype, shape: tuple[int, ...], order: Any) -> np.ndarray:
    return np.frombuffer(raw, dtype=dtype.real()).reshape(shape, order=order)


def _encode(text: str, encoding: str | bytes = "latin1") -> bytes:
    if encoding not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError(f"text encoded as {encoding!r} is not read")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): None,  # only ever handed to _reconstruct, which does not need it
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): OrderedDict,
}
for _core in ("numpy.core", "numpy._core"):  # NumPy 1 and 2
    _ALLOWED[f"{_core}.multiarray", "_reconstruct"] = _Array
    _ALLOWED[f"{_core}.numeric", "_frombuffer"] = _from_buffer


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise AuguryError(f"it asks for {flat(module)}.{flat(name)}, which could run code")
        return _ALLOWED[module, name]


def read_pickle(path: Path) -> dict[str, Any]:
    """Read a pickled dict of plain values and arrays, of Python 2 or 3; its keys become text."""
    try:
        with open(path, "rb") as file:
            found = _Unpickler(file, encoding="bytes").load()
    except AuguryError as error:
        raise AuguryError(f"{flat(path)} was rejected: {error}; use only files you trust") from None
    except OSError:
        raise
    # A damaged pickle can fail in any way at all, and the file is all that there is to blame.
    except Exception as error:  # a damaged pickle may raise anything
        raise AuguryError(
            f"{flat(path)} is damaged, or not a pickle of arrays ({cause(error)}); copy it again"
        ) from None
    if not isinstance(found, dict):
        raise AuguryError(f"{flat(path)} holds {kind_of(found)}; expected a dictionary")
    if any(isinstance(v, _Array) and not hasattr(v, "values") for v in found.values()):
        raise AuguryError(f"{flat(path)} is damaged: an array in it has no values; copy it again")
    return {
        key.decode("latin1") if isinstance(key, bytes) else str(key): (
            value.values if isinstance(value, _Array) else value
        )
        for key, value in found.items()
    }
