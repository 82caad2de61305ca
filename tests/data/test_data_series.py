"""Series: files of the UCR and UEA archives, collections, unequal lengths and missing values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusal import refused

import augury
from augury.data import as_dataset, load, load_new
from augury.data.gaps import fill_gaps, stack_series

HEADER = "# made by hand\n@problemName Toy\n@timeStamps false\n@univariate {one}\n{label}\n@data\n"


def write_ts(
    path: Path, rows: list[str], *, one: bool = True, label: str = "@classLabel true up down"
) -> Path:
    head = HEADER.format(one=str(one).lower(), label=label)
    path.write_text(head + "\n".join(rows) + "\n")
    return path


def test_a_file_with_one_channel(tmp_path: Path) -> None:
    rows = ["1,2,3:up", "3,2,1:down", "2,3,4:up", "4,3,2:down"]
    data = load(write_ts(tmp_path / "Toy_TRAIN.ts", rows))
    assert (data.kind, data.shape, data.classes) == ("series", (1, 3), ("up", "down"))
    assert data.y.tolist() == [0, 1, 0, 1]
    raw = np.array([[1, 2, 3], [3, 2, 1], [2, 3, 4], [4, 3, 2.0]])
    np.testing.assert_allclose(data.x[:, 0], (raw - raw.mean()) / raw.std(), atol=1e-6)


def test_channels_unequal_lengths_and_missing_values(tmp_path: Path) -> None:
    rows = ["1,2,3:9,9,8:a", "1,?,5,7:1,1,1,1:b", "4,4:2,?:a", "NaN,1,2,3:0,0,0,1:b"]
    path = write_ts(tmp_path / "t.ts", rows, one=False, label="@classLabel true a b")
    data = load(path)
    assert data.shape == (2, 4)
    assert "series of 2 to 4 values were padded to 4 with their last value" in data.notes
    filled = "5 missing values in 3 series (15.6 % of all) were filled by linear interpolation"
    assert filled in data.notes
    preparation = data.preparation
    assert preparation is not None
    mean, deviation = np.array(preparation.mean), np.array(preparation.deviation)
    back = data.x.numpy() * deviation[:, None] + mean[:, None]
    np.testing.assert_allclose(back[0], [[1, 2, 3, 3], [9, 9, 8, 8]], atol=1e-5)
    np.testing.assert_allclose(back[1, 0], [1, 3, 5, 7], atol=1e-5)
    np.testing.assert_allclose(back[2], [[4, 4, 4, 4], [2, 2, 2, 2]], atol=1e-5)
    np.testing.assert_allclose(back[3, 0], [1, 1, 2, 3], atol=1e-5)


def test_a_real_target(tmp_path: Path) -> None:
    rows = [f"{k},{k + 1},{k - 1}:{k / 2}" for k in range(8)]
    data = load(write_ts(tmp_path / "t.ts", rows, label="@targetLabel true"))
    assert data.classes is None
    np.testing.assert_allclose(data.labels(), np.arange(8) / 2)
    numbers = write_ts(tmp_path / "n.ts", rows, label="@classLabel true")
    assert load(numbers, task="regression").classes is None


def test_text_of_the_archive_pads_with_nan_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "Toy_TRAIN.tsv"
    path.write_text("1\t1.0\t2.0\t3.0\n2\t4.0\tNaN\tNaN\n1\t0.0\tNaN\t2.0\n2\t5\t5\t5\n")
    data = load(path)
    assert (data.shape, data.classes) == ((1, 3), ("1", "2"))
    assert "series of 1 to 3 values were padded to 3 with their last value" in data.notes
    assert any("1 missing value in 1 series" in note for note in data.notes)


def test_a_table_with_names_is_a_table_still(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("a\tb\ty\n" + "1.0\t2.5\t0\n3.0\t1.5\t1\n" * 4)
    assert load(path, label="y").kind == "vector"
    refused("which column|--label", load, path)
    path.write_text("0\t1\t2\n" + "1.0\t2.5\t0\n3.0\t1.5\t1\n" * 4)  # names that are numbers
    assert load(path, label="2").kind == "vector"


def test_a_directory_of_the_archive_and_new_series(tmp_path: Path) -> None:
    folder = tmp_path / "Toy"
    folder.mkdir()
    write_ts(folder / "Toy_TRAIN.ts", ["1,2,3:up", "3,2,1:down"] * 3)
    write_ts(folder / "Toy_TEST.ts", ["1,2,3,4:up", "3,2:down"])
    data = load(folder)
    assert (len(data), data.shape) == (6, (1, 3))
    new = load_new(folder, data.preparation, shape=data.shape, real=False)
    assert new.x.shape == (2, 1, 3)  # cut and padded to the model's length
    assert new.y is not None
    assert new.y.tolist() == ["up", "down"]
    assert any("cut to the model's length" in note for note in new.notes)


def test_collections_as_aeon_and_sktime_hold_them() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(2, length)) for length in (5, 7, 6, 7)]
    y = ["a", "b", "a", "b"]
    data = as_dataset(arrays, y)
    assert (data.kind, data.shape) == ("series", (2, 7))
    nested = pd.DataFrame({f"dim_{c}": [pd.Series(one[c]) for one in arrays] for c in range(2)})
    assert np.array_equal(as_dataset(nested, y).x, data.x)
    long = pd.concat({i: pd.DataFrame(one.T) for i, one in enumerate(arrays)})
    assert np.array_equal(as_dataset(long, y).x, data.x)
    equal = rng.normal(size=(4, 2, 9))  # aeon's numpy3D
    equal[1, 0, 3] = np.nan
    found = as_dataset(equal, y)
    assert (found.kind, found.shape) == ("series", (2, 9))
    filled = "1 missing value in 1 series (1.4 % of all) was filled by linear interpolation"
    assert filled in found.notes


def test_series_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.ts"
    refused(
        "same number of channels|example 1 has 1|first has 2", load,
        write_ts(path, ["1,2:3,4:up", "1,2:down"], one=False),
    )  # fmt: skip
    refused("same number of channels", as_dataset, [np.zeros((2, 4)), np.zeros((3, 4))], [0, 1])
    refused("line 7|one length", load, write_ts(path, ["1,2:3:up"], one=False))
    refused("line 8|'abc'", load, write_ts(path, ["1,2:up", "1,abc:down"]))
    refused("holds no series", load, write_ts(path, []))
    refused("has no labels|@classLabel", load, write_ts(path, ["1,2", "2,1"], label=""))
    refused("number to predict|'x'", load, write_ts(path, ["1,2:x"], label="@targetLabel true"))
    path.write_text("1,2:up\n")
    refused("line 1|@data", load, path)
    path.write_text("@timeStamps true\n@classLabel true a b\n@data\n(0,1),(1,2):a\n")
    refused("line 1|time stamps|equal steps", load, path)
    refused("example 2|no value", as_dataset, _with_nan(2, slice(None)), [0, 1, 0, 1])
    refused("channel 2 of 2|no value", as_dataset, _with_nan(slice(None), 1), [0, 1, 0, 1])
    refused("label is only for tables", load, path, label="y")


def _with_nan(example: int | slice, channel: int | slice) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(4, 2, 9))
    x[example, channel] = np.nan
    return x


def test_an_empty_channel_of_one_series_becomes_the_mean() -> None:
    x = np.random.default_rng(0).normal(size=(4, 2, 9))
    x[1, 1] = np.nan
    filled, notes = fill_gaps(x)
    np.testing.assert_allclose(filled[1, 1], np.nanmean(x[:, 1]))
    assert np.isnan(x[1, 1]).all()  # the user's array stays as it was
    assert notes == [
        "9 missing values in 1 series (12.5 % of all) were filled by linear interpolation, or, "
        "where a series has no value in a channel, by the mean of the channel"
    ]


def test_stacking_needs_values() -> None:
    refused("example 1|without values", stack_series, [np.zeros((1, 3)), np.zeros((1, 0))])


@pytest.mark.parametrize("effort", [1])
def test_a_file_is_ranked(effort: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for k in range(24):
        values = np.sin(np.arange(16) / 2 + k % 2 * 1.5) + 0.1 * rng.normal(size=16)
        rows.append(",".join(f"{v:.3f}" for v in values) + ":" + ("up", "down")[k % 2])
    path = write_ts(tmp_path / "Toy_TRAIN.ts", rows)
    found = augury.rank(str(path), None, ["jitter(0.1)", "time_flip"], effort=effort)
    assert len(found.rows) == 2
