"""What an object of another library is: its library, its steps and a name, without importing it."""

from __future__ import annotations

import enum
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

LIBRARIES = frozenset({"torchvision", "kornia", "albumentations", "audiomentations", "timm"})
"""The libraries whose transforms are known."""

_LONGEST_NAME = 60


def library_of(transform: Any) -> str | None:
    """Return the library that a transform comes from; None for functions and the user's classes."""
    if isinstance(transform, types.FunctionType | types.MethodType | functools.partial):
        return None
    if isinstance(transform, torch.nn.Sequential) and _root(type(transform)) == "torch":
        inside = {library_of(step) for step in transform}
        return inside.pop() if len(inside) == 1 else None
    roots = [_root(cls) for cls in type(transform).__mro__]
    for root in roots:
        if root in LIBRARIES:
            return root
    return roots[0] if _installed(roots[0]) else None


def _root(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _installed(root: str) -> bool:
    """Return whether a package is an installed library: neither Python's own nor the user's."""
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return bool({"site-packages", "dist-packages"} & set(Path(file).parts))


def steps_of(transform: Any) -> list[Any] | None:
    """Return the steps of a pipeline that applies all of them in order; None for anything else."""
    if type(transform).__name__ == "Compose" and library_of(transform) is not None:
        return list(transform.transforms)
    if isinstance(transform, torch.nn.Sequential):
        return list(transform)
    return None


def every_step(transform: Any) -> Iterator[Any]:
    """Yield a transform and all that it is made of."""
    yield transform
    inside = getattr(transform, "transforms", None)
    parts = inside if isinstance(inside, list | tuple) else steps_of(transform)
    for step in parts or ():
        yield from every_step(step)


def name_of(transform: Any) -> str:
    """Return a short name: the class and the settings that are not its defaults."""
    kind = type(transform).__name__
    steps = steps_of(transform)
    if steps is not None:
        inside = ", ".join(type(step).__name__ for step in steps)
    else:
        inside = ", ".join(_settings(transform))
    if not inside and steps is None:  # kornia keeps its settings elsewhere
        inside = " ".join(repr(transform).split()).partition("(")[2].removesuffix(")")
    room = _LONGEST_NAME - len(kind) - 2
    return f"{kind}({inside if len(inside) <= room else inside[: room - 1] + '…'})"


def _settings(transform: Any) -> Iterator[str]:
    for name, parameter in inspect.signature(type(transform)).parameters.items():
        value = getattr(transform, name, parameter.default)
        if isinstance(value, torch.nn.Module | Tensor) or callable(value):
            continue
        if repr(value) != repr(parameter.default):
            yield f"{name}={value.value if isinstance(value, enum.Enum) else value}"
