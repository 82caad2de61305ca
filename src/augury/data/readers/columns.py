"""The columns of a table as features: numbers, and words as one-hot columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat, listed

if TYPE_CHECKING:
    import pandas as pd

    from augury.data.preparation import Preparation

_MOST_CATEGORIES = 20


def column_of(frame: pd.DataFrame, name: str, what: str) -> pd.Series:
    """Return the one column of a name."""
    found: Any = frame[name]
    if found.ndim > 1:
        raise AuguryError(f"{flat(what)} has {found.shape[1]} columns {name!r}; rename one")
    return found


def features_of(
    frame: pd.DataFrame, what: str
) -> tuple[list[tuple[str, str | None]], list[np.ndarray], list[str]]:
    """Return what each feature is (a column, or a word of one), its values, and what was done."""
    import pandas as pd

    names: list[tuple[str, str | None]] = []
    columns: list[np.ndarray] = []
    one_hot: list[str] = []
    dropped: list[str] = []
    filled: list[str] = []
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if not pd.api.types.is_numeric_dtype(column.dtype):
            distinct = _count(column)
            numbers = _numbers(column)
            whole = bool((np.isnan(numbers) | (numbers % 1 == 0)).all())
            if distinct > _MOST_CATEGORIES or (distinct and not whole):  # 0, 1, 2, 3+ may be words
                _check_stray(column, numbers, what, most=True)
            if not 0 < distinct <= _MOST_CATEGORIES:
                dropped.append(name)
                continue
            one_hot.append(name)
            words = _words(column)
            for word in sorted({word for word in words.tolist() if word is not None}):
                names.append((name, word))
                columns.append((words == word).astype(np.float64))
            continue
        values = column.to_numpy(np.float64, na_value=np.nan)
        missing = np.isnan(values)
        if missing.all():
            dropped.append(name)
            continue
        if missing.any():
            filled.append(f"{name} ({int(missing.sum()):,})")
            with np.errstate(invalid="ignore"):  # infinite values are refused later, and counted
                values = np.where(missing, values[~missing].mean(), values)
        names.append((name, None))
        columns.append(values)
    return names, columns, _notes(one_hot, dropped, filled)


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
    known: dict[str, set[str]] = {}
    for name, word in like.columns:
        if word is not None:
            known.setdefault(name, set()).add(word)
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
    notes = _notes([], [], filled, "the model's mean")
    for name, values in words.items():
        new = sorted(set(values.tolist()) - {None} - known[name])
        if new:
            notes.append(f"words of {flat(name)} that the model does not know: {listed(new)}")
    extra = [name for name in frame.columns if name not in found]
    if extra:
        notes.append(f"columns that the model does not take were left out: {listed(extra)}")
    return columns, notes


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
            f"column {flat(column.name)!r} of {flat(what)} is numeric except for {stray.sum():,} "
            f"cells, the first of them {flat(column.iloc[first])[:40]!r} in row {first + 1} "
            "(without the header); correct these cells or leave them empty"
        )


def _notes(
    one_hot: list[Any], dropped: list[Any], filled: list[Any], mean: str = "their column's mean"
) -> list[str]:
    notes = []
    if one_hot:
        notes.append(f"columns of words became one-hot: {listed(one_hot)}")
    if dropped:
        notes.append(
            f"columns with more than {_MOST_CATEGORIES} distinct words, or without values, were "
            f"dropped: {listed(dropped)}"
        )
    if filled:
        notes.append(f"missing values became {mean}: {listed(filled)}")
    return notes
