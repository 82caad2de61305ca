"""CSV and Parquet tables: a row an example, a column a feature, one column the label."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import cause, did_you_mean, flat, listed
from augury.data.limits import check_bytes
from augury.data.readers.columns import column_of, features_of, same_features
from augury.data.readers.source import Source

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".tsv", ".parquet", ".pq")


def read_table(path: Path, label: str | None, like: Mapping[str, Any] | None = None) -> Source:
    """Read a table: numbers as they are, words with few distinct values as one-hot columns.

    Missing numbers become their column's mean; a missing word is none of its column's values.
    New examples for a model come with what was kept of its own data, `like`: their columns are
    found by their names, and the label may be missing.
    """
    frame = _frame(path)
    frame.columns = [str(column) for column in frame.columns]
    columns = list(frame.columns)
    if label is None and like is not None:
        label = next((name for name in columns if name == like.get("label")), None)
    elif label is None:
        raise AuguryError(
            f"which column of {flat(path)} is the label? give --label (label= in Python), one of: "
            f"{listed(columns, 12)}"
        )
    elif label not in columns:
        raise AuguryError(
            f"{flat(path)} has no column {label!r}{did_you_mean(label, columns) or ';'} "
            f"its columns are {listed(columns, 12)}"
        )
    y = None
    if label is not None:
        y = column_of(frame, label, path)
        frame = frame.drop(columns=label)
    if like is not None and "columns" in like:
        names = like["columns"]
        features, notes = same_features(frame, like, path)
    else:
        names, features, notes = features_of(frame, path)
    if not features:
        raise AuguryError(
            f"{flat(path)} has no column of numbers to learn from"
            + (f" beside the label {label!r}" if label is not None else "")
            + (f" ({notes[-1]})" if notes else "")
        )
    return Source(np.column_stack(features), y, notes=tuple(notes), columns=names)


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
