"""Labels as users have them, turned into class numbers or a real target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import are, count, flat, is_number, listed
from augury.data.layout import to_array
from augury.data.tags import are_tags, check_tags

TASKS = ("classification", "regression", "multi-label")
_MOST_FLOAT_CLASSES = 100
_LARGEST = 1e150  # squares of larger numbers may overflow


@dataclass(frozen=True)
class Labels:
    """Labels in the form that a `Dataset` holds.

    Attributes
    ----------
    y
        ``(N,)`` class numbers (int64), or real targets (float64), not yet centred.
    classes
        The classes' names, or None for a real target.
    tags
        The labels' names of a multi-label target, where `y` is ``(N, labels)``; else None.
    """

    y: np.ndarray
    classes: tuple[str, ...] | None
    tags: tuple[str, ...] | None = None

    @property
    def count(self) -> int | None:
        """The number of classes, or None."""
        return None if self.classes is None else len(self.classes)

    def take(self, rows: np.ndarray) -> Labels:
        """Return the labels of some examples; classes without any of them are left out."""
        y = self.y[rows]
        if self.tags is not None:
            check_tags(y, self.tags)
            return Labels(y, None, self.tags)
        if self.classes is None:
            _check_spread(y)
            return Labels(y, None)
        counts = np.bincount(y, minlength=len(self.classes))
        present = np.flatnonzero(counts)
        names = tuple(self.classes[c] for c in present)
        check_counts(counts[present], names)
        return Labels(np.searchsorted(present, y), names)


def as_numbers(values: np.ndarray) -> np.ndarray:
    """Return labels as real numbers; raise if they are words."""
    try:
        return values.astype(np.float64)
    except ValueError:
        word = next(value for value in values.tolist() if not is_number(value))
        raise AuguryError(
            f"a regression needs numbers as labels, not words such as {flat(word)!r}; "
            "leave the task out to classify them"
        ) from None


def encode(
    y: Any, n: int, classes: Sequence[object] | None = None, task: str | None = None
) -> Labels:
    """Turn labels into class numbers, or keep them as a real target, and check them.

    Whole numbers, words and truth values are classes, numbered by their sorted order; so are
    floats that are all whole, with at most 100 distinct values and at most one for every two
    examples. Other floats are a real target. A table of 0 and 1 is multi-label, unless every row
    has exactly one 1.

    Parameters
    ----------
    y
        The labels: anything array-like.
    n
        How many examples there are.
    classes
        Names for class numbers 0, 1, … or, where `y` holds words, the order of the classes.
        Classes without an example are left out.
    task
        ``"classification"``, ``"regression"`` or ``"multi-label"``, where the labels alone leave it
        open.
    """
    if task not in (None, *TASKS):
        raise AuguryError(f"task must be one of {', '.join(TASKS)}, not {task!r}")
    given = label_array(y)
    tagged = are_tags(given, task)
    if task == "multi-label" and not tagged:
        raise AuguryError(
            "multi-label targets are a table of 0 and 1 with a column for each label, not of "
            f"shape {given.shape}"
        )
    values = given if tagged else _values(given)
    if len(values) != n:
        raise AuguryError(
            f"{count(len(values), 'label')} for {count(n, 'example')}; expected one label for each "
            "example"
        )
    if tagged:
        return Labels(values.astype(np.float64), None, check_tags(values, classes))
    if task == "regression":
        if classes is not None and values.dtype.kind in "iu":  # numbers of classes, not targets
            names = np.array([str(name) for name in classes])
            values = names[values] if values.min() >= 0 and values.max() < len(names) else values
        values, classes = as_numbers(values), None
    if values.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise AuguryError(
                f"{count(len(bad), 'label')} {are(len(bad))} missing or infinite, the first of "
                f"them at example {bad[0]}; drop those examples"
            )
        if task == "regression" or (
            task is None and classes is None and not _are_whole_classes(values)
        ):
            if float(np.abs(values).max()) > _LARGEST:
                raise AuguryError(
                    f"targets go up to {np.abs(values).max():.0e}, which is too large to square; "
                    "rescale them to values near 1"
                )
            _check_spread(values)
            return Labels(values.astype(np.float64), None)
        whole = bool(np.all((values == np.floor(values)) & (np.abs(values) < 2.0**63)))
        if classes is not None and not whole:
            raise AuguryError(
                "class names were given, but the labels are not whole numbers; drop the names"
            )
        values = values.astype(np.int64) if whole else values
    distinct, numbers = np.unique(values, return_inverse=True)
    if classes is None:
        names = tuple(str(value) for value in distinct.tolist())
    else:
        names, numbers = _named(distinct, numbers, [str(name) for name in classes])
    check_counts(np.bincount(numbers, minlength=len(names)), names, values.dtype.kind in "iuf")
    return Labels(numbers.astype(np.int64), names)


def label_array(y: Any) -> np.ndarray:
    """Return labels as an array; what is missing among words stays missing."""
    if isinstance(y, list | tuple) and _mixes_words_and_nan(y):
        y = np.array(y, dtype=object)  # else NumPy makes a word of what is missing
    return to_array(y, "labels")


def as_written(y: Any) -> np.ndarray | None:
    """Return labels as `encode` names classes, however few there are; None if some are missing."""
    plain = to_array(y, "labels")
    if any(_is_missing(value) for value in plain.ravel().tolist()):
        return None
    values = _values(plain)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return None
    if values.dtype.kind == "f" and np.all(
        (values == np.floor(values)) & (np.abs(values) < 2.0**63)
    ):
        values = values.astype(np.int64)
    return np.array([str(value) for value in values.tolist()])


def check_counts(counts: np.ndarray, names: Sequence[str], numeric: bool = False) -> None:
    """Check that there are two classes or more, with two examples or more each."""
    if len(counts) == 1:
        raise AuguryError(
            f"every example belongs to the class {flat(names[0])!r}; two classes are needed"
        )
    lone = [repr(flat(name)) for name, count in zip(names, counts, strict=True) if count == 1]
    if lone:
        which = f"class {lone[0]} has" if len(lone) == 1 else f"classes {listed(lone, 4)} have"
        hint = ", or predict numbers with --task regression (task= in Python)" if numeric else ""
        raise AuguryError(f"{which} only one example; drop it or add examples{hint}")


def _check_spread(values: np.ndarray) -> None:
    if np.ptp(values) == 0:
        raise AuguryError(f"every target is {values[0]:g}; at least two values are needed")


def _mixes_words_and_nan(y: Sequence[Any]) -> bool:
    words = any(isinstance(label, str) for label in y)
    return words and any(
        isinstance(label, float | np.floating) and math.isnan(label) for label in y
    )


def _values(y: Any) -> np.ndarray:
    """Return the labels as one column of whole numbers, floats or words."""
    values = to_array(y, "labels")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise AuguryError(
            f"labels must be one value for each example, not of shape {values.shape}; "
            "for one-hot rows give y.argmax(1)"
        )
    if values.dtype.kind == "O":  # a column of a table, perhaps: words, or numbers in disguise
        missing = [i for i, value in enumerate(values) if _is_missing(value)]
        if missing:
            raise AuguryError(
                f"{count(len(missing), 'label')} {are(len(missing))} missing or infinite, the "
                f"first of them at example {missing[0]}; drop those examples"
            )
        plain = [value.item() if isinstance(value, np.generic) else value for value in values]
        plain = [float(value) if isinstance(value, Decimal) else value for value in plain]
        if all(isinstance(value, str) for value in plain):
            values = np.asarray(plain, dtype=str)
        elif all(isinstance(value, bool | int | float) for value in plain):
            values = np.asarray(plain)
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    if values.dtype.kind not in "biufU":
        raise AuguryError(f"labels must be numbers or words, not {values.dtype}")
    return values


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)  # NaN differs from itself
    except (TypeError, ValueError):  # pandas' NA has no truth value
        return True


def _are_whole_classes(values: np.ndarray) -> bool:
    if np.any(values != np.floor(values)):
        return False
    return len(np.unique(values)) <= min(_MOST_FLOAT_CLASSES, len(values) // 2)


def _named(
    distinct: np.ndarray, numbers: np.ndarray, names: list[str]
) -> tuple[tuple[str, ...], np.ndarray]:
    """Number the classes as the given names order them."""
    if distinct.dtype.kind == "U":
        place = {name: i for i, name in enumerate(names)}
        unknown = [value for value in distinct.tolist() if value not in place]
        ranks = np.array([place.get(value, -1) for value in distinct.tolist()])
    else:
        unknown = [v for v in distinct.tolist() if not 0 <= v < len(names)]
        ranks = distinct.astype(np.int64)
    twice = [name for name in set(names) if names.count(name) > 1]
    if twice:
        raise AuguryError(f"two classes have the name {flat(twice[0])!r}; rename one")
    if unknown:
        raise AuguryError(
            f"label {flat(unknown[0])!r} is not one of the {len(names)} classes given "
            f"({listed(names, 5)})"
        )
    kept = np.sort(ranks)
    return tuple(names[r] for r in kept), np.searchsorted(kept, ranks)[numbers]
