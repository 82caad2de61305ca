"""Checks of arguments, with a one-line error for invalid ones."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from augury._base.errors import AuguryError


def check_tensor(x: Any) -> None:
    """Raise unless x is a tensor."""
    if not isinstance(x, Tensor):
        raise AuguryError(
            f"x must be a tensor of examples, got {type(x).__name__}; convert arrays with "
            "torch.as_tensor"
        )


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
            f"x must be an array or a tensor of examples, got {type(x).__name__} that holds no "
            "numbers of one shape"
        ) from None
    check_batch(batch)
    return batch


def as_path(path: Any) -> Path:
    """Return a path; raise if it is not one."""
    if not isinstance(path, str | os.PathLike):
        raise AuguryError(f"expected the path of a file or directory, got {type(path).__name__}")
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
        raise AuguryError(f"{name} must be {expected}, got {value!r}")
    return number


def as_names(name: str, value: Any) -> list[str]:
    """Return a name, or several, as a list of strings; raise if they are something else."""
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    names: list[Any] = list(value) if several else [value]
    if not all(isinstance(one, str) for one in names):
        raise AuguryError(f"{name} must be strings, got {value!r}")
    return names
