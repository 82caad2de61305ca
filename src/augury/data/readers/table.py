"""CSV and Parquet tables: each row is an example, one column the label, the others features."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import are, cause, count, did_you_mean, flat, listed
from augury.data.limits import check_bytes
from augury.data.readers.columns import as_words, column_of, features_of, same_features, words_of
from augury.data.readers.filelist import find_files_column, read_list
from augury.data.source import Request, Source

if TYPE_CHECKING:
    import pandas as pd

_PARQUET = (".parquet", ".pq")
TABLES = (".csv", ".tsv", *_PARQUET)


def read_table(path: Path, request: Request) -> Source:
    """Read a table from a file, or the images that it lists; see `read_frame`."""
    frame = _frame(path)
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    files = find_files_column(frame, path, request)
    if files is None and request.size is not None:
        raise AuguryError(
            f"a size is for images, but no column of {flat(path)} lists any; remove it here"
        )
    others = [column for column in frame.columns if column not in (files, request.group)]
    alone = files is not None and len(others) == 1 and request.label is None and not request.new
    label = others[0] if alone else _label(list(frame.columns), request, str(path))
    if path.suffix.lower() not in _PARQUET:
        _keep_written(frame, path, label, request)
    if files is None:
        return read_frame(frame, request, str(path))
    return read_list(frame, files, label, request, path)


def read_frame(frame: pd.DataFrame, request: Request, what: str, y: Any = None) -> Source:
    """Read a frame: numbers as they are, words with few distinct values as one-hot columns.

    Missing numbers become their column's mean; a missing word is none of its column's values.
    Where a model's preparation is known, its columns are found by their names. Labels are a
    column's, or `y`.
    """
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    like = request.like
    if y is not None and request.label is not None:
        raise AuguryError("labels were given twice, as y and as label; pass only one of them")
    label = None if y is not None else _label(list(frame.columns), request, what)
    if label is not None:
        y = column_of(frame, label, what)
        frame = frame.drop(columns=label)
    groups = None
    if request.group is not None:
        group = find_column(frame, request.group, what)
        groups = np.asarray(column_of(frame, group, what), dtype=object)
        frame = frame.drop(columns=group)
    missing = None
    if like is not None and like.columns:
        names = like.columns
        features, notes = same_features(frame, like, what)
    else:
        found = features_of(frame, what, request.new)
        names, features, notes = tuple(found.names), found.values, found.notes()
        missing = np.column_stack(found.missing) if found.filled else None
    if not features:
        raise AuguryError(
            f"{flat(what)} has no column of numbers to learn from"
            + (f" beside the label {label!r}" if label is not None else "")
            + (f" ({'; '.join(notes)})" if notes else "")
        )
    return Source(
        np.column_stack(features),
        y,
        notes=tuple(notes),
        columns=names,
        missing=missing,
        label=label,
        groups=groups,
    )


def _label(columns: list[str], request: Request, what: str) -> str | None:
    """Return the column of the labels; None where new examples have none."""
    label = None if request.label is None else str(request.label)  # as columns are named here
    if label is None and request.new:
        known = None if request.like is None else request.like.label
        return known if known in columns else None
    if label is None:
        raise AuguryError(
            f"which column of {flat(what)} is the label? give --label (label= in Python), one of: "
            f"{listed(columns, 12)}"
        )
    return find_column(columns, label, what)


def find_column(columns: Iterable[str], name: str, what: str) -> str:
    """Return the name of a column; raise with the known columns if it does not exist."""
    known = list(columns)
    if name not in known:
        joined = len(known) == 1 and any(sign in known[0] for sign in ";|")
        raise AuguryError(
            f"{flat(what)} has no column {name!r}{did_you_mean(name, known) or ';'} "
            f"its columns are {listed(known, 12)}"
            + ("; separate its columns by commas, or by tabs in a .tsv file" if joined else "")
        )
    return name


def _frame(path: Path) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError:
        raise AuguryError("reading tables needs pandas; pip install 'augury[tables]'") from None
    try:
        if path.suffix.lower() in _PARQUET:
            _check_parquet(path)
            return pd.read_parquet(path, engine="pyarrow")
        return pd.read_csv(path, sep=_separator(path), low_memory=False)  # one type a column
    except ImportError:
        raise AuguryError(
            "reading Parquet files needs pyarrow; pip install 'augury[tables]'"
        ) from None
    except (AuguryError, MemoryError):
        raise
    except Exception as error:  # a damaged file can make pandas and pyarrow raise anything
        raise AuguryError(f"{flat(path)} cannot be read as a table: {cause(error)}") from error


def _separator(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _keep_written(frame: pd.DataFrame, path: Path, label: str | None, request: Request) -> None:
    """Let labels, groups and words that a model knows be in a frame as they are in its file."""
    known = words_of(request.like)
    names = dict.fromkeys((label, request.group, *known))
    present = [name for name in names if name is not None and name in frame.columns]
    texts = _texts(path, frame, present)
    for name, words in known.items():
        if name in texts:
            frame[name] = as_words(column_of(frame, name, str(path)), texts[name], words)
    for name, noun, what in ((label, "label", "class"), (request.group, "group", "group")):
        if name in texts:
            read = column_of(frame, name, str(path))
            frame[name] = _as_written(read, texts[name], path, noun, what)


def _as_written(read: pd.Series, texts: pd.Series, path: Path, noun: str, what: str) -> pd.Series:
    """Return labels, or groups, as they are written where they are codes, such as 01.

    Words that pandas takes for missing values are refused: they may well be a class.
    """
    words = texts.to_numpy(object)[read.isna().to_numpy() & (texts.str.strip() != "").to_numpy()]
    if len(words):
        raise AuguryError(
            f"{count(len(words), noun)} of {flat(path)} {are(len(words))} "
            f"{flat(repr(words[0]))}, which stands for a missing value in tables; rename this "
            f"{what}, or drop these rows"
        )
    codes = bool(texts.str.fullmatch(r"\s*[+-]?0\d+\s*").any())
    return texts.where(texts != "") if codes else read


def _texts(path: Path, frame: pd.DataFrame, names: list[str]) -> dict[str, pd.Series]:
    """Return the cells of columns as the file has them; none where its rows are read otherwise."""
    import pandas as pd

    columns = list(frame.columns)
    places = sorted(columns.index(name) for name in names)
    if not places:
        return {}
    texts = pd.read_csv(
        path, sep=_separator(path), usecols=places, dtype=str, keep_default_na=False
    )
    if len(texts) != len(frame):  # rows may have more fields than the header
        return {}
    return {columns[place]: texts.iloc[:, k] for k, place in enumerate(places)}


def _check_parquet(path: Path) -> None:
    """Raise if a file's header promises too much: a column can be packed to a few bytes."""
    from pyarrow import parquet

    about = parquet.read_metadata(path)
    check_bytes(about.num_rows * about.num_columns * 8, path, "save fewer rows")
