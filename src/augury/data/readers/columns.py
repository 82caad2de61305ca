"""The columns of a table as features: numbers, and words as one-hot columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import count, flat, listed

if TYPE_CHECKING:
    import pandas as pd

    from augury.data.preparation import Preparation

_MOST_CATEGORIES = 20
_DATE = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})([ T].*)?")


def column_of(frame: pd.DataFrame, name: str, what: str) -> pd.Series:
    """Return the one column of a name."""
    found: Any = frame[name]
    if found.ndim > 1:
        raise AuguryError(f"{flat(what)} has {found.shape[1]} columns {name!r}; rename one")
    return found


@dataclass
class Features:
    """The features of a table, and what was done to its columns.

    Attributes
    ----------
    names
        What each feature is: a column, or a word of one.
    values, missing
        Of each feature, and which of them were missing and have been filled in.
    one_hot, wordy, empty, constant, dates, filled
        The columns that this was done to.
    """

    names: list[tuple[str, str | None]] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    missing: list[np.ndarray] = field(default_factory=list)
    one_hot: list[str] = field(default_factory=list)
    wordy: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)

    def add(self, name: str, word: str | None, values: np.ndarray, missing: np.ndarray) -> None:
        """Add a feature."""
        self.names.append((name, word))
        self.values.append(values)
        self.missing.append(missing)

    def notes(self) -> list[str]:
        """Describe the changes, one sentence for each kind of column."""
        said = (
            ("text columns were one-hot encoded", self.one_hot),
            (f"columns with over {_MOST_CATEGORIES} distinct words, or no words, were left out",
             self.wordy),
            ("columns without any value were left out", self.empty),
            ("columns with only one value were left out", self.constant),
            ("columns of dates were left out; add relevant parts, such as the month, as numbers",
             self.dates),
            ("missing values were replaced by the mean of the column", self.filled),
        )  # fmt: skip
        return [f"{what}: {listed(names)}" for what, names in said if names]


def features_of(frame: pd.DataFrame, what: str, new: bool = False) -> Features:
    """Return the features of a frame; of `new` examples for a model, constant columns too."""
    import pandas as pd

    found = Features()
    for place, name in enumerate(frame.columns):
        column = _plain(frame.iloc[:, place])
        if column.isna().all():
            found.empty.append(name)
        elif _are_dates(column):
            found.dates.append(name)
        elif pd.api.types.is_numeric_dtype(column.dtype):
            _add_numbers(found, name, column, new)
        else:
            _add_words(found, name, column, what)
    return found


def _plain(column: pd.Series) -> pd.Series:
    """Return a column of numbers that are objects, such as decimals, as one of floats."""
    if column.dtype != object:
        return column
    cells = column.dropna()
    real = all(isinstance(c, Real | Decimal) and not isinstance(c, bool) for c in cells)
    return column.astype(np.float64) if real and len(cells) else column


def _add_numbers(found: Features, name: str, column: pd.Series, new: bool) -> None:
    values = column.to_numpy(np.float64, na_value=np.nan)
    missing = np.isnan(values)
    present = values[~missing]
    if not new and (present == present[0]).all() and not missing.any():
        found.constant.append(name)
        return
    if missing.any():
        found.filled.append(f"{name} ({int(missing.sum()):,})")
        with np.errstate(invalid="ignore", over="ignore"):  # infinite values are refused later
            filling = present.mean()
            if (present == filling).any():  # so that what was missing can be told from what was not
                filling += 1e-3 * (present.std() or 1.0)
            values = np.where(missing, filling, values)
    found.add(name, None, values, missing)


def _add_words(found: Features, name: str, column: pd.Series, what: str) -> None:
    distinct = _count(column)
    numbers = _numbers(column)
    with np.errstate(invalid="ignore"):  # an infinite number has no remainder
        whole = bool((np.isnan(numbers) | (numbers % 1 == 0)).all())
    if distinct > _MOST_CATEGORIES or (distinct and not whole):  # 0, 1, 2, 3+ may be words
        _check_stray(column, numbers, what, most=True)
    if not 0 < distinct <= _MOST_CATEGORIES:
        found.wordy.append(name)
        return
    if distinct == 1 and not column.isna().any():
        found.constant.append(name)
        return
    found.one_hot.append(name)
    words = _words(column)
    for word in sorted({word for word in words.tolist() if word is not None}):
        values = (words == word).astype(np.float64)
        found.add(name, word, values, np.zeros(len(values), dtype=bool))


def _are_dates(column: pd.Series) -> bool:
    """Return whether every cell is a date, as a type of its own or as it is written."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    if pd.api.types.is_numeric_dtype(column.dtype):
        return False
    cells = column.dropna()
    return all(_is_date(str(cell)) for cell in cells.iloc[:1000])


def _is_date(cell: str) -> bool:
    """Return whether a cell is a day of the calendar, its year first or last.

    The year has four digits, or two; then those of a date with points, which could be a version,
    have two as well.
    """
    match = _DATE.fullmatch(cell)
    if match is None:
        return False
    first, joint, second, third, _ = match.groups()
    if len(first) == 4:
        return _is_day(first, second, third)
    short = len(third) == 2 and (joint != "." or len(first) == len(second) == 2)
    if len(first) > 2 or not (len(third) == 4 or short):
        return False
    year = third if len(third) == 4 else f"20{third}"
    orders = [(year, second, first), (year, first, second)]
    if short and len(first) == 2:
        orders.append((f"20{first}", second, third))
    return any(_is_day(*order) for order in orders)


def _is_day(year: str, month: str, day: str) -> bool:
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def same_features(
    frame: pd.DataFrame, like: Preparation, what: str
) -> tuple[list[np.ndarray], list[str]]:
    """Return the features of a model's table, in their order; missing numbers become its means."""
    wanted = list(dict.fromkeys(name for name, _ in like.columns))
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise AuguryError(
            f"{flat(what)} lacks {len(missing):,} of the {len(wanted):,} columns that the model "
            f"was fitted on: {listed(missing)}; add them, under these names"
        )
    found = {name: column_of(frame, name, what) for name in wanted}
    known = words_of(like)
    words = {name: _words(found[name]) for name in known}
    columns: list[np.ndarray] = []
    filled: list[str] = []
    for (name, word), mean in zip(like.columns, like.mean, strict=True):
        if word is not None:
            columns.append((words[name] == word).astype(np.float64))
            continue
        values = _numbers(found[name])
        _check_stray(found[name], values, what)
        if np.isnan(values).any():
            filled.append(f"{name} ({int(np.isnan(values).sum()):,})")
        columns.append(np.where(np.isnan(values), mean, values))
    notes = [f"missing values became the model's mean: {listed(filled)}"] if filled else []
    for name, values in words.items():
        new = sorted(set(values.tolist()) - {None} - known[name])
        if new:
            notes.append(f"words of {flat(name)} that are unknown to the model: {listed(new)}")
    extra = [name for name in frame.columns if name not in found]
    if extra:
        notes.append(f"columns that the model does not use were left out: {listed(extra)}")
    return columns, notes


def words_of(like: Preparation | None) -> dict[str, set[str]]:
    """Return the words that a model knows of each of its columns of text."""
    known: dict[str, set[str]] = {}
    for name, word in () if like is None else like.columns:
        if word is not None:
            known.setdefault(name, set()).add(word)
    return known


def as_words(column: pd.Series, texts: pd.Series, known: set[str]) -> np.ndarray:
    """Return a column of a file as words: cells that a model knows as the file has them.

    Other rows may have made words of 01 where these alone make a number of it.
    """
    return np.where(texts.isin(known), texts.to_numpy(object), _words(column))


def _count(column: pd.Series) -> int:
    try:
        return int(column.nunique())
    except TypeError:  # lists and the like, which have no hash
        return 0


def _words(column: pd.Series) -> np.ndarray:
    """Return a column as words, None where one is missing; whole numbers without a point."""
    values = zip(column.convert_dtypes().tolist(), column.isna(), strict=True)
    return np.array([None if missing else str(value) for value, missing in values], dtype=object)


def _numbers(column: pd.Series) -> np.ndarray:
    """Return a column as numbers, NaN where a cell is not one."""
    import pandas as pd

    found: Any = pd.to_numeric(column.astype(object), errors="coerce")
    return found.to_numpy(np.float64, na_value=np.nan)


def _check_stray(column: pd.Series, numbers: np.ndarray, what: str, *, most: bool = False) -> None:
    """Raise if some cells are not numbers; with `most`, only if most of the others are."""
    stray = column.notna().to_numpy() & np.isnan(numbers)
    if stray.any() and not (most and np.sum(~np.isnan(numbers)) <= stray.sum()):
        first = int(np.argmax(stray))
        raise AuguryError(
            f"column {flat(column.name)!r} of {flat(what)} is numeric except for "
            f"{count(int(stray.sum()), 'cell')}, the first of them "
            f"{flat(column.iloc[first])[:40]!r} in row {first + 1} "
            "(without the header); correct these cells or leave them empty"
        )
