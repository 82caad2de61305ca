"""Groups of examples that belong together: one speaker, patient or source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import cause, count, flat, listed
from augury.data.labels import Labels, as_written


def match_groups(pattern: str, names: Sequence[str]) -> np.ndarray:
    r"""Return the part of each file's name that a regular expression captures.

    Parameters
    ----------
    pattern
        A regular expression with one group, as ``_(\w+)_``; searched in each name.
    names
        Paths of files below the directory, with forward slashes.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise AuguryError(
            f"the group {flat(pattern)!r} is not a regular expression: {cause(error)}"
        ) from None
    if compiled.groups != 1:
        raise AuguryError(
            f"the group {flat(pattern)!r} must be a regular expression with one pair of brackets "
            f"around the shared part, such as '_(.+)_', but it has {compiled.groups}"
        )
    found = [compiled.search(name) for name in names]
    missing = [name for name, match in zip(names, found, strict=True) if not (match and match[1])]
    if missing:
        raise AuguryError(
            f"the group {flat(pattern)!r} matches {len(names) - len(missing):,} of {len(names):,} "
            f"files; it does not match {listed(missing, 2)}"
        )
    return np.array([match[1] for match in found if match is not None])


def name_groups(groups: Any, n: int) -> np.ndarray:
    """Return the groups of n examples as words; raise if some have none."""
    names = as_written(groups)
    if names is None:
        raise AuguryError(
            "some groups are missing; assign one to every example, or drop the example"
        )
    if len(names) != n:
        raise AuguryError(
            f"{count(len(names), 'group')} for {count(n, 'example')}; give one for each example"
        )
    return names


def number_groups(names: np.ndarray, labels: Labels) -> np.ndarray:
    """Number the groups, and check that each class comes from two or more."""
    distinct, numbers = np.unique(names, return_inverse=True)
    if len(distinct) == 1:
        raise AuguryError(
            f"every example belongs to the group {flat(distinct[0])!r}; two or more are needed to "
            "train on some and test on others"
        )
    for number, name in enumerate(labels.classes or ()):
        own = np.unique(numbers[labels.y == number])
        if len(own) == 1:
            raise AuguryError(
                f"class {flat(name)!r} comes from only one group, {flat(distinct[own[0]])!r}; a "
                "class needs two or more to be both trained on and tested: drop the class, or "
                "group by something else"
            )
    return numbers.astype(np.int64)
