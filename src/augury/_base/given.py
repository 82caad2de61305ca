"""Checks of arguments, with a one-line error for invalid ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.text import kind_of, shown


def check_tensor(x: Any) -> None:
    """Raise unless x is a tensor."""
    if not isinstance(x, Tensor):
        raise AuguryError(
            f"x must be a tensor of examples, got {kind_of(x)}; convert arrays with torch.as_tensor"
        )


def check_tensors(**given: Any) -> None:
    """Raise unless all of these are tensors, by the name of each."""
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise AuguryError(
                f"{name} must be a tensor, got {kind_of(value)}; convert arrays with "
                "torch.as_tensor"
            )


def check_index(index: Any) -> None:
    """Raise unless these are the examples' indices: whole numbers, one for each."""
    if not isinstance(index, Tensor) or index.dim() != 1 or not _are_whole(index):
        got = kind_of(index)
        if isinstance(index, Tensor):
            got = f"shape {tuple(index.shape)} of {index.dtype}"
        raise AuguryError(
            f"index must be a tensor of whole numbers, one for each example, got {got}; such as "
            "torch.arange(8)"
        )


def _are_whole(x: Tensor) -> bool:
    return not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)


def as_index(index: Any) -> Tensor:
    """Return one index or those in a list, an array or a tensor as a tensor of one dimension."""
    try:
        found = torch.as_tensor(index).reshape(-1)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # of text, ragged lists, 2**64
        raise AuguryError(
            "index must be whole numbers below 2**63, one for each example, got "
            f"{shown(index)}; such as torch.arange(8)"
        ) from None
    check_index(found)
    return found


def check_targets(y: Any, examples: int) -> None:
    """Raise unless this is a tensor of one target for each example."""
    check_tensors(y=y)
    if y.shape[:1] != (examples,):
        raise AuguryError(
            f"y must have one target for each of the {examples} examples, got shape "
            f"{tuple(y.shape)}"
        )


def check_kind(name: str, value: Any, kind: type, words: str) -> None:
    """Raise unless a value is of a class of augury's, in words such as ``"an Orbit"``."""
    if not isinstance(value, kind):
        raise AuguryError(f"{name} must be {words}, got {kind_of(value)}")


def check_batch(x: Any) -> None:
    """Raise unless x is a tensor of one example or more."""
    check_tensor(x)
    if x.dim() < 1 or not len(x):
        raise AuguryError(f"x must contain at least one example, got shape {tuple(x.shape)}")


def as_batch(x: Any) -> Tensor:
    """Return an array or a tensor of examples as a tensor."""
    try:
        batch = torch.as_tensor(x)
    except (TypeError, ValueError, RuntimeError):  # what torch raises for text, None, ragged lists
        raise AuguryError(
            f"x must be an array or a tensor of examples, got {kind_of(x)} that holds no "
            "numbers of one shape"
        ) from None
    check_batch(batch)
    return batch


def as_path(path: Any) -> Path:
    """Return a path; raise if it is not one."""
    if not isinstance(path, str | os.PathLike):
        raise AuguryError(f"expected the path of a file or directory, got {kind_of(path)}")
    if path == "":
        raise AuguryError("expected the path of a file or directory, got an empty string")
    return Path(path)


def as_whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Return an integer, including NumPy's, as an int; raise if it is not one or out of range."""
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    small = number is not None and least is not None and number < least
    large = number is not None and most is not None and number > most
    if number is None or small or large:
        expected = "a whole number" if least is None else f"a whole number of {least} or more"
        if most is not None:
            expected = f"a whole number from {least} to {most:,}"
        raise AuguryError(f"{name} must be {expected}, got {shown(value)}")
    return number


def as_seed(value: Any) -> int:
    """Return a random seed as an int; raise unless NumPy, PyTorch and the command line take it."""
    return as_whole("seed", value, 0, 2**63 - 1)


def as_number(
    name: str,
    value: Any,
    least: float | None = None,
    most: float | None = None,
    *,
    positive: bool = False,
) -> float:
    """Return a finite number, including NumPy's, as a float; raise if it is not in range."""
    fits = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    number: Any = value if fits else 0
    fits = fits and abs(number) <= sys.float_info.max
    fits = fits and (least is None or number >= least) and (most is None or number <= most)
    if not fits or (positive and not number > 0):
        expected = "a positive number" if positive else "a number"
        if least is not None and most is not None:
            expected = f"a number from {least:g} to {most:g}"
        elif least is not None:
            expected = f"a number of {least:g} or more"
        raise AuguryError(f"{name} must be {expected}, got {shown(value)}")
    return float(number)


def as_numbers(name: str, value: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return a list, an array or a tensor as an array in float64; raise if it holds no numbers.

    Parameters
    ----------
    name
        What the caller calls it.
    value
        The numbers; they must be finite.
    shape
        That they must have, if any.
    """
    try:
        found = np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value)
        found = found.astype(np.float64, copy=False) if found.dtype.kind in "biuf" else None
    except (TypeError, ValueError, RuntimeError):  # of ragged lists and odd types
        found = None
    if found is None:
        raise AuguryError(f"{name} must be numbers in an array of one shape, got {shown(value)}")
    if shape is not None and found.shape != shape:
        raise AuguryError(f"{name} must have the shape {shape}, got {found.shape}")
    if not np.isfinite(found).all():
        raise AuguryError(f"{name} must be finite, but some values are infinite or not numbers")
    return found


def as_list(name: str, value: Any) -> list[Any]:
    """Return what a list, a tuple or an array holds; raise if it is none of these."""
    try:
        if not isinstance(value, str | bytes | dict):
            return list(value)
    except TypeError:
        pass
    raise AuguryError(f"{name} must be a list, got {shown(value)}")


def is_one_of(value: Any, known: Collection[Any]) -> bool:
    """Return whether a value is one of a few words or numbers, whatever it may be."""
    return isinstance(value, str | Real) and value in known


def as_names(name: str, value: Any) -> list[str]:
    """Return a name, or several, as a list of strings; raise if they are something else."""
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    names: list[Any] = list(value) if several else [value]
    if not all(isinstance(one, str) for one in names):
        raise AuguryError(f"{name} must be strings, got {shown(value)}")
    return names
