"""CSV and Parquet tables: there and back, and each way in which they can be bad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz.harness import GOOD, judge
from refusal import refused

from augury.data import limits, load


def save_table(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet"])
def test_tables(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "size": [1.0, 2.0, None, 4.0, 5.0, 6.0] * 5,
            "kind": ["x", "y", None, "y", "x", "y"] * 5,
            "species": ["owl", "ape"] * 15,
            "id": [f"number {i}" for i in range(30)],
            "flag": [True, False, True] * 10,
        }
    )
    data = load(save_table(frame, tmp_path / name), label="species")
    assert data.classes == ("ape", "owl")
    assert data.shape == (4,)  # size, two of kind, flag
    filled = frame["size"].fillna(frame["size"].mean()).to_numpy()
    columns = [filled, frame["kind"] == "x", frame["kind"] == "y", frame["flag"]]
    expected = np.column_stack([np.asarray(c, dtype=float) for c in columns])
    expected = (expected - expected.mean(0)) / expected.std(0)
    np.testing.assert_allclose(data.x.numpy(), expected, atol=1e-6)
    notes = " | ".join(data.notes)
    assert "one-hot encoded: kind |" in notes
    assert "over 20 distinct words, or no words, were left out: id |" in notes
    assert "mean of the column: size (5) |" in notes


def test_columns_of_lists_are_dropped(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [[1], [2], [1], [2]], "y": [0, 1, 0, 1]})
    data = load(save_table(frame, tmp_path / "t.parquet"), label="y")
    assert data.shape == (1,)
    assert "left out: b" in data.notes[0]


def test_a_table_with_a_real_target(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(9.0), "price": np.linspace(0.5, 9.25, 9)})
    data = load(save_table(frame, tmp_path / "t.csv"), label="price")
    assert data.classes is None
    assert abs(float(data.y.mean())) < 1e-12


def test_bad_tables(tmp_path: Path) -> None:
    frame = pd.DataFrame({"width": [1.0, 2, 3, 4], "colour": ["a", "b", "a", "b"], "n": 3})
    path = save_table(frame, tmp_path / "t.csv")
    refused("which column|--label|width, colour and n", load, path)
    refused(
        "no column 'color'; did you mean colour?|width, colour and n", load, path, label="color"
    )
    refused("no column 'zzz'; its columns are", load, path, label="zzz")
    save_table(pd.DataFrame({"id": [f"r{i}" for i in range(40)], "y": [0, 1] * 20}), path)
    refused("no column of numbers|'y'|id", load, path, label="y")
    save_table(pd.DataFrame({"a": [1.0, 2, 3, 4], "y": ["a", None, "b", "a"]}), path)
    refused("1 label is missing|example 1", load, path, label="y")
    save_table(pd.DataFrame({"a": [1.0, np.inf, 3, 4], "y": [0, 1, 0, 1]}), path)
    refused("1 value in 1 example is NaN or infinite|example 1", load, path, label="y")
    path.write_text("")
    refused("t.csv cannot be read as a table", load, path, label="y")
    path.write_text('a,b\n1,2\n1,2,3\n"')
    refused("t.csv cannot be read as a table", load, path, label="y")
    path.write_bytes(b"a,b\n\xff\xfe,2\n")
    refused("t.csv cannot be read as a table", load, path, label="b")
    parquet = tmp_path / "t.parquet"
    parquet.write_bytes(b"PAR1 nothing")
    refused("t.parquet cannot be read as a table", load, parquet, label="y")


def test_numbers_too_large_for_a_float(tmp_path: Path) -> None:
    rows = [f"{'9' * 400 if k == 2 else k},{k % 2}" for k in range(8)]
    (tmp_path / "t.csv").write_text("\n".join(["a,y", *rows]))
    refused("t.csv|a", load, tmp_path / "t.csv", label="y")
    (tmp_path / "t.csv").write_text("\n".join(["y,a", *rows]))
    refused("", load, tmp_path / "t.csv", label="y")


@pytest.mark.parametrize("odd", ["", "[]", "{}", '{"columns": 3}', '{"index_columns": [[1]]}'])
def test_parquet_with_odd_pandas_metadata(odd: str, tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, 2, 3, 4], "y": [0, 1, 0, 1]})
    pq.write_table(table.replace_schema_metadata({"pandas": odd}), tmp_path / "t.parquet")
    outcome = judge(lambda: load(tmp_path / "t.parquet", label="y"))
    assert outcome[0] in GOOD, outcome


@pytest.mark.parametrize("rows", [8, 60])
def test_a_stray_word_among_numbers(rows: int, tmp_path: Path) -> None:
    cells: list[object] = [i + 0.5 for i in range(rows)]
    cells[4] = "abc"
    frame = pd.DataFrame({"b": 1.0, "a": cells, "y": [0, 1] * (rows // 2)})
    path = save_table(frame, tmp_path / "t.csv")
    refused(
        "column 'a'|numeric except for 1 cell,|'abc' in row 5|leave them empty",
        load,
        path,
        label="y",
    )
    for mark in ("", "NA", "nan", "null", "N/A"):
        frame.loc[4, "a"] = mark
        data = load(save_table(frame, path), label="y")
        assert data.shape == (1,)  # b has one value only
        assert "mean of the column: a (1)" in " ".join(data.notes)


def test_a_few_whole_numbers_and_words_are_categories(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["0", "1", "2", "2", "3+", "1"] * 4, "y": [0, 1] * 12})
    data = load(save_table(frame, tmp_path / "t.csv"), label="y")
    assert data.shape == (4,)
    assert "one-hot encoded: a" in " ".join(data.notes)


def test_a_parquet_file_that_promises_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_table(pd.DataFrame({"a": np.zeros(1000), "y": 0}), tmp_path / "t.parquet")
    monkeypatch.setattr(limits, "MOST_BYTES", 10_000)
    refused("t.parquet would take|above the limit", load, path, label="y")


def test_columns_that_say_nothing_are_left_out_in_a_line_each(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "a": [1.0, 2, 3, 4, 5, 6],
            "same": 3,
            "word": "x",
            "nothing": [None] * 6,
            "day": [f"2024-03-0{k}" for k in range(1, 7)],
            "moment": pd.date_range("2024-01-01", periods=6, freq="h"),
            "y": [0, 1] * 3,
        }
    )
    for name in ("t.csv", "t.parquet"):
        data = load(save_table(frame, tmp_path / name), label="y")
        assert data.shape == (1,)
        assert data.notes[:3] == (
            "columns without any value were left out: nothing",
            "columns with only one value were left out: same and word",
            "columns of dates were left out; add relevant parts, such as the month, as numbers: "
            "day and moment",
        )
    only = frame[["same", "day", "y"]]
    refused(
        "no column of numbers|'y'|only one value were left out: same|dates were left out",
        load, save_table(only, tmp_path / "t.csv"), label="y",
    )  # fmt: skip


def test_missing_numbers_can_be_told_from_means(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2, 3, None, 2, None], "b": range(6), "y": [0, 1] * 3})
    data = load(save_table(frame, tmp_path / "t.csv"), label="y")
    assert data.missing is not None
    assert data.missing[:, 0].tolist() == [False, False, False, True, False, True]
    assert not data.missing[:, 1].any()
    filling = data.x[3, 0]
    assert (data.x[:, 0] == filling).tolist() == data.missing[:, 0].tolist()
    kept = data.subsample(4, 0).missing
    assert kept is not None
    assert kept.shape == (4, 2)


def kinds_of(cells: list[str], folder: Path) -> str:
    """Return what the first note says of a column with these cells."""
    frame = pd.DataFrame({"a": range(12), "b": (cells * 12)[:12], "y": [0, 1] * 6})
    return load(save_table(frame, folder / "t.csv"), label="y").notes[0]


@pytest.mark.parametrize(
    "cells",
    [
        ["2024-03-01", "2023-12-31"], ["2024/3/1", "2024/12/31 10:20"], ["31/12/2024", "1/2/2024"],
        ["12/31/2024", "1/2/2024"], ["31.12.2024", "1.2.2024"], ["31-12-24", "01-02-24"],
        ["12/31/24", "1/2/24"], ["31.12.24", "01.02.24"], ["99-12-31", "98-01-02"],
        ["2024-03-01T10:20:30Z", "2024-02-29"],
    ],
)  # fmt: skip
def test_dates_are_left_out(cells: list[str], tmp_path: Path) -> None:
    assert kinds_of(cells, tmp_path).startswith("columns of dates were left out")


@pytest.mark.parametrize(
    "cells",
    [
        ["1.2.1", "1.2.2"], ["10.2.15", "10.3.1"], ["2024.13.1", "2024.14.2"], ["1-2-1", "1-2-3"],
        ["2024-13-45", "2024-99-01"], ["10.15.7", "10.16.0"], ["1/2-2024", "1/3-2024"],
        ["31/02/2024", "30/02/2024"], ["123-4-5", "123-4-6"],
    ],
)  # fmt: skip
def test_versions_and_the_like_are_words_and_not_dates(cells: list[str], tmp_path: Path) -> None:
    assert kinds_of(cells, tmp_path) == "text columns were one-hot encoded: b"
