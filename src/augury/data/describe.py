"""What a dataset is, in plain values, and what to be careful about."""

from __future__ import annotations

import math
from typing import Any

from augury._base.given import check_kind
from augury._base.text import listed
from augury.data.dataset import Dataset

_UNEQUAL = 10
_FEW = 100  # an accuracy near 50 % of 100 examples has a standard error of 5 points
_FEW_IN_CLASS = 10
_FEW_GROUPS = 5


def describe(data: Dataset, *, seen: int | None = None) -> dict[str, Any]:
    """Return what the data is, with the number of examples of each class, and its warnings.

    Parameters
    ----------
    data
        The examples.
    seen
        How many of them whatever judges them will look at, where that is fewer.

    Returns
    -------
    about
        Plain values that JSON can hold. ``warnings`` is a list of (code, sentence); the codes are
        ``few-examples``, ``few-groups``, ``unequal-classes``, ``few-in-class`` and
        ``many-classes``.
    """
    check_kind("data", data, Dataset, "a Dataset, such as augury.load returns")
    return {
        "name": data.name,
        "kind": data.kind,
        "task": data.task,
        "examples": len(data),
        "shape": list(data.shape),
        **({} if data.rate is None else {"rate": data.rate}),
        "classes": None if data.classes is None else list(data.classes),
        "tags": None if data.tags is None else list(data.tags),
        "counts": None if data.classes is None else _counts(data),
        "notes": list(data.notes),
        "warnings": [list(warning) for warning in _warnings(data, seen)],
    }


def _counts(data: Dataset) -> list[int]:
    return data.y.bincount(minlength=len(data.classes or ())).tolist()


def _warnings(data: Dataset, seen: int | None) -> list[tuple[str, str]]:
    n = len(data)
    found: list[tuple[str, str]] = []
    if n < _FEW:
        sentence, error = f"there are only {n} examples", 100 / math.sqrt(n)
        if data.classes is not None:
            sentence += f": an accuracy on all of them is uncertain by ±{error:.0f} points"
        found.append(("few-examples", sentence))
    if data.groups is not None and (groups := len(data.groups.unique())) < _FEW_GROUPS:
        sentence = f"there are only {groups} groups, too few to estimate how much groups differ"
        found.append(("few-groups", sentence))
    if data.classes is None:
        return found
    counts = dict(zip(data.classes, _counts(data), strict=True))
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    if counts[most] >= _UNEQUAL * counts[least]:
        found.append(
            (
                "unequal-classes",
                f"the classes are very imbalanced: {counts[most]:,} examples of {most!r} and "
                f"{counts[least]:,} of {least!r}; plain accuracy says little about the small ones",
            )
        )
    few = [f"{name!r} ({count})" for name, count in counts.items() if count < _FEW_IN_CLASS]
    if few:
        found.append(
            (
                "few-in-class",
                f"{len(few):,} of {len(counts):,} classes {'has' if len(few) == 1 else 'have'} "
                f"fewer than {_FEW_IN_CLASS} "
                f"examples: {listed(few, 4)}",
            )
        )
    if seen is not None and seen < 2 * len(counts):
        found.append(
            (
                "many-classes",
                f"there are {len(counts):,} classes, but only {seen:,} examples are used: "
                "most classes are seen once or not at all",
            )
        )
    return found
