"""Lists of files with cells that name no file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from refusal import refused

from augury.data import load

X = np.random.default_rng(0).integers(0, 256, (12, 9, 8), dtype=np.uint8)


def write(folder: Path, names: list[object]) -> Path:
    (folder / "photos").mkdir(exist_ok=True)
    for k in range(12):
        Image.fromarray(X[k]).save(folder / "photos" / f"{k}.png")
    frame = pd.DataFrame({"file": names, "age": np.arange(12) + 0.5, "y": [*"ab"] * 6})
    frame.to_csv(folder / "list.csv", index=False)
    return folder / "list.csv"


def test_spaces_around_names_are_no_part_of_them(tmp_path: Path) -> None:
    names = [f" {k}.png" if k % 2 else f"{k}.png  " for k in range(12)]
    data = load(write(tmp_path, [*names]), label="y")
    np.testing.assert_array_equal(data.x[:, 0].numpy(), X)


@pytest.mark.parametrize(
    ("cell", "said"), [(None, "empty"), ("", "empty"), ("5", "'5'"), ("5.gif.txt", "'5.gif.txt'")]
)
def test_a_cell_without_a_file_is_refused(cell: object, said: str, tmp_path: Path) -> None:
    names: list[object] = [f"{k}.png" for k in range(12)]
    names[5] = cell
    refused(
        "row 6 (without the header) of |list.csv names no image in column 'file', as 11 others do|"
        f"the cell is {said}; correct or remove this row", load, write(tmp_path, names), label="y",
    )  # fmt: skip


def test_few_names_of_files_in_a_column_are_words(tmp_path: Path) -> None:
    names: list[object] = ["none"] * 8 + [f"{k}.png" for k in range(4)]
    assert load(write(tmp_path, names), label="y").kind == "vector"
    gone: list[object] = ["none"] + ["gone.png"] * 11  # words that end so, but no files
    assert load(write(tmp_path, gone), label="y").kind == "vector"
