"""CSV and Parquet tables: a row an example, a column a feature, one column the label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.data.limits import check_bytes
from augury.data.messages import cause, flat, listed, nearest
from augury.data.source import Source
from augury.errors import AuguryError

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".tsv", ".parquet", ".pq")
_MOST_CATEGORIES = 20


def read_table(path: Path, label: str | None) -> Source:
    """Read a table: numbers as they are, words with few distinct values as one-hot columns.

    Missing numbers become their column's mean; a missing word is none of its column's values.
    """
    frame = _frame(path)
    frame.columns = [str(column) for column in frame.columns]
    columns = list(frame.columns)
    if label is None:
        raise AuguryError(
            f"which column of {flat(path)} is the label? give --label (label= in Python), one of: "
            f"{listed(columns, 12)}"
        )
    if label not in columns:
        raise AuguryError(
            f"{flat(path)} has no column {label!r}{nearest(label, columns) or ';'} "
            f"its columns are {listed(columns, 12)}"
        )
    if columns.count(label) > 1:
        raise AuguryError(f"{flat(path)} has {columns.count(label)} columns {label!r}; rename one")
    place = columns.index(label)
    features, notes = _features(frame.drop(columns=label))
    if not features:
        raise AuguryError(
            f"{flat(path)} has no column of numbers to learn from beside the label {label!r}"
            + (f" ({notes[-1]})" if notes else "")
        )
    return Source(np.column_stack(features), frame.iloc[:, place], kind=None, notes=tuple(notes))


def _frame(path: Path) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError:
        raise AuguryError("reading tables needs pandas; pip install 'augury[tables]'") from None
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            _check_parquet(path)
            return pd.read_parquet(path, engine="pyarrow")
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        return pd.read_csv(path, sep=separator, low_memory=False)  # one type a column, no warning
    except ImportError:
        raise AuguryError(
            "reading Parquet files needs pyarrow; pip install 'augury[tables]'"
        ) from None
    except AuguryError:
        raise
    # What pandas and pyarrow raise for files that they cannot make sense of.
    except (ValueError, OSError, OverflowError, RuntimeError) as error:
        raise AuguryError(f"{flat(path)} cannot be read as a table: {cause(error)}") from None


def _check_parquet(path: Path) -> None:
    """Refuse a file whose header promises too much: its encodings pack a column to a few bytes."""
    from pyarrow import parquet

    about = parquet.read_metadata(path)
    check_bytes(about.num_rows * about.num_columns * 8, path, "save fewer rows")


def _features(frame: pd.DataFrame) -> tuple[list[np.ndarray], list[str]]:
    import pandas as pd

    columns: list[np.ndarray] = []
    one_hot: list[str] = []
    dropped: list[str] = []
    filled: list[str] = []
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if not pd.api.types.is_numeric_dtype(column.dtype):
            values = _distinct(column)
            if not 0 < len(values) <= _MOST_CATEGORIES:
                dropped.append(name)
                continue
            one_hot.append(name)
            columns += [(column == value).to_numpy(np.float64, na_value=0.0) for value in values]
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
        columns.append(values)
    return columns, _notes(one_hot, dropped, filled)


def _distinct(column: pd.Series) -> list[Any]:
    try:
        return sorted(column.dropna().unique().tolist(), key=str)
    except TypeError:  # lists and the like, which have no hash
        return []


def _notes(one_hot: list[Any], dropped: list[Any], filled: list[Any]) -> list[str]:
    notes = []
    if one_hot:
        notes.append(f"columns of words became one-hot: {listed(one_hot)}")
    if dropped:
        notes.append(
            f"columns were dropped, of more than {_MOST_CATEGORIES} distinct words or of no value: "
            f"{listed(dropped)}"
        )
    if filled:
        notes.append(f"missing values became their column's mean: {listed(filled)}")
    return notes
