"""What a caller passed: one clear line where it is not what a function takes."""

from __future__ import annotations

import os
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
        raise AuguryError(f"x must hold one example or more, got shape {tuple(x.shape)}")


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
    return Path(path)
