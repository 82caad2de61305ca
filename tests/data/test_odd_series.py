"""Files of series with gaps where a label or a number should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusal import refused

from augury.data import as_dataset, load, load_new

ROWS = [f"{k}.5\t{k}\t{-k}" for k in range(8)]
HEAD = "@problemName t\n@classLabel true\n@data\n"


def write(path: Path, labels: list[str]) -> Path:
    if path.suffix == ".ts":
        lines = [f"{row.replace(chr(9), ',')}:{y}" for row, y in zip(ROWS, labels, strict=True)]
        path.write_text(HEAD + "\n".join(lines))
    else:
        path.write_text("\n".join(f"{y}\t{row}" for row, y in zip(ROWS, labels, strict=True)))
    return path


@pytest.mark.parametrize(("name", "line"), [("t.tsv", 4), ("t.ts", 7)])
def test_a_line_without_its_label(name: str, line: int, tmp_path: Path) -> None:
    data = load(write(tmp_path / name, ["1", "2"] * 4))
    assert data.shape == (1, 3)
    path = write(tmp_path / name, ["1", "2", "1", "", "1", "", "2", "2"])
    refused(f"line {line} of |{name} has no label|give one to each series", load, path)
    found = load_new(path, data.preparation, shape=data.shape, real=False)
    assert found.x.shape == (8, 1, 3)
    assert found.y is None
    assert any("some labels are missing" in note for note in found.notes)
    path = write(tmp_path / name, [""] * 8)
    refused(f"{name} has no labels", load, path)
    assert load_new(path, data.preparation, shape=data.shape, real=False).y is None


def test_infinite_values_are_counted_before_series_are_padded(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("1\t1\t2\t3\t4\n2\t1\tinf\n1\t-inf\tNaN\t2\t3\n2\t4\t3\t2\t1\n")
    said = (
        "2 values in 2 examples are NaN or infinite, the first of them in example 1; drop or repair"
    )
    refused(said, load, path)
    arrays = [np.array([[1.0, 2, np.inf]]), np.array([[1.0, 2, 3, 4, 5]])] * 2
    refused("2 values in 2 examples are NaN or infinite", as_dataset, arrays, [0, 1] * 2)
