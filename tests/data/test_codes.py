"""Codes such as 01 stay as they are written: as labels, groups and words of new examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusal import refused

from augury.data import load, load_new

HEADER = "@problemName codes\n@classLabel true {classes}\n@data\n"


def write_ts(path: Path, labels: list[str], classes: str = "") -> Path:
    rows = [f"{k},{k % 3},{2 * k}:{label}" for k, label in enumerate(labels)]
    path.write_text(HEADER.format(classes=classes) + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("classes", ["", "01 1 2"])
def test_classes_of_series_stay_as_they_are_written(classes: str, tmp_path: Path) -> None:
    labels = ["01", "1", "2", "01", "1", "2"]
    data = load(write_ts(tmp_path / "Codes_TRAIN.ts", labels, classes))
    assert data.classes == ("01", "1", "2")
    assert data.y.tolist() == [0, 1, 2, 0, 1, 2]
    write_ts(tmp_path / "Codes_TEST.ts", labels, classes)
    new = load_new(tmp_path, data.preparation, shape=data.shape, real=False)
    assert new.y is not None
    assert new.y.tolist() == labels


@pytest.mark.parametrize("label", ["²", "--5", "٣", "-0", "9" * 30])
def test_classes_of_series_that_only_look_like_numbers(label: str, tmp_path: Path) -> None:
    path = write_ts(tmp_path / "t.ts", [label, "3"] * 3)
    assert set(load(path).classes or ()) == {label, "3"}


def test_whole_numbers_are_classes_in_their_order(tmp_path: Path) -> None:
    path = write_ts(tmp_path / "t.ts", ["10", "-1", "9"] * 2)
    assert load(path).classes == ("-1", "9", "10")
    assert np.array_equal(load(path).y, [2, 0, 1] * 2)


def write_list(folder: Path, labels: list[str], header: str = "file,code") -> Path:
    for k in range(len(labels)):
        Image.fromarray(np.full((8, 8), 9 * k, np.uint8)).save(folder / f"{k}.png")
    rows = "".join(f"{k}.png,{label}\n" for k, label in enumerate(labels))
    (folder / "list.csv").write_text(f"{header}\n{rows}")
    return folder / "list.csv"


def test_classes_of_listed_files_stay_as_they_are_written(tmp_path: Path) -> None:
    path = write_list(tmp_path, ["007", "7", "12"] * 2)
    data = load(path)
    assert data.classes == ("007", "12", "7")
    new = load_new(path, data.preparation, shape=data.shape, real=False, label="code")
    assert new.y is not None
    assert new.y.tolist() == ["007", "7", "12"] * 2


@pytest.mark.parametrize("word", ["NA", "None"])
def test_a_class_of_listed_files_named_like_a_missing_value(tmp_path: Path, word: str) -> None:
    path = write_list(tmp_path, [word, "US"] * 3)
    refused(f"3 labels of |list.csv are '{word}'|rename this class", load, path)
    refused("3 labels are missing", load, write_list(tmp_path, ["", "US"] * 3))


def check_groups(path: Path, label: str) -> None:
    data = load(path, label=label, group="patient")
    assert data.groups is not None
    assert len(set(data.groups.tolist())) == 4, path  # 01 and 1 are two


def test_groups_stay_as_they_are_written(tmp_path: Path) -> None:
    patients = ["01", "1", "02", "2"] * 4
    cells = [f"{k % 4 // 2},{patient}" for k, patient in enumerate(patients)]
    listing = write_list(tmp_path, cells, "file,code,patient")
    table = tmp_path / "t.csv"
    table.write_text("a,code,patient\n" + "".join(f"{k}.5,{c}\n" for k, c in enumerate(cells)))
    for path in (table, listing):
        check_groups(path, "code")


@pytest.mark.parametrize("word", ["NA", "null"])
def test_a_group_named_like_a_missing_value(word: str, tmp_path: Path) -> None:
    rows = [f"{k}.5,{k % 2},{word if k < 4 else 'b'}" for k in range(8)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,code,patient", *rows]))
    refused(
        f"4 groups of |are '{word}'|rename this group", load, path, label="code", group="patient"
    )


def write_words(path: Path, rows: list[str], header: str = "a,code,flag,y") -> Path:
    path.write_text("\n".join([header, *rows]))
    return path


def test_words_of_a_model_are_found_in_new_rows_that_look_like_numbers(tmp_path: Path) -> None:
    cells = ["01,true", "2.0,false", "3A,", "2,true", "1,TRUE", "1,true"] * 2
    rows = [f"{k % 5}.5,{cell},{k % 2}" for k, cell in enumerate(cells)]
    data = load(write_words(tmp_path / "old.csv", rows), label="y")
    kept = [k for k, cell in enumerate(cells) if cell != "3A,"]
    # What is left of one column are numbers, and of the other, truth values.
    new = write_words(tmp_path / "new.csv", [rows[k] for k in kept])
    found = load_new(new, data.preparation, shape=data.shape, real=False)
    assert not any("unknown" in note for note in found.notes)
    assert np.array_equal(found.x, data.x.numpy()[kept])


def test_words_that_a_model_does_not_know_are_reported(tmp_path: Path) -> None:
    rows = [f"{k % 5}.5,{('01', '3A')[k % 2]},t,{k // 2 % 2}" for k in range(8)]
    data = load(write_words(tmp_path / "old.csv", rows), label="y")
    new = write_words(tmp_path / "new.csv", ["1.5,01,t", "2.5,5,t"], "a,code,flag")
    found = load_new(new, data.preparation, shape=data.shape, real=False)
    assert "words of code that are unknown to the model: 5" in found.notes
    assert found.x[0, 1] > 0 > found.x[1, 1]
