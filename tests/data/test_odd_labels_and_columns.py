"""Labels, columns and files that are unusual: read as meant, or refused in one line."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import soundfile
from PIL import Image
from refusal import refused
from torch.utils.data import Subset

import augury
from augury.data import as_dataset, load

VALUES = np.random.default_rng(0).normal(size=(20, 3))


@pytest.mark.parametrize("label", [3, ("k", "y")])
def test_a_label_may_be_any_name_of_a_column(label):
    frame = pd.DataFrame(VALUES).assign(y=np.arange(20) % 2)
    frame.columns = pd.Index([0, 1, 2, label], dtype=object, tupleize_cols=False)
    found = as_dataset(frame, label=label)
    assert (found.shape, found.classes) == ((3,), ("0", "1"))


def test_labels_are_given_once():
    frame = pd.DataFrame(VALUES, columns=list("abc")).assign(y=["u", "v"] * 10)
    refused("labels were given twice", as_dataset, frame, [0, 1] * 10, label="y")


def test_a_missing_label_among_words_is_not_a_word():
    labels = ["a", "b", math.nan, "a"] * 5
    refused("5 labels are missing or infinite", as_dataset, VALUES, labels)


def test_sparse_rows_are_read():
    found = as_dataset(scipy.sparse.csr_matrix(VALUES), np.arange(20) % 2)
    dense = as_dataset(VALUES, np.arange(20) % 2)
    assert (found.x == dense.x).all()


@pytest.mark.parametrize("kind", [Decimal, float])
def test_numbers_that_are_objects_are_numbers(kind):
    price = pd.Series([kind(str(1.5 * k)) for k in range(30)], dtype=object)
    price[4] = None
    frame = pd.DataFrame({"price": price, "y": ["u", "v"] * 15})
    found = as_dataset(frame, label="y")
    assert found.shape == (1,)
    assert any("replaced by the mean of the column: price (1)" in note for note in found.notes)
    target = as_dataset(VALUES, [Decimal(k) / 7 for k in range(20)])
    assert target.task == "regression"


def test_a_link_to_itself_is_one_file_that_is_not_read(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for k in range(3):
            Image.fromarray(np.full((8, 8), 40 * k, np.uint8)).save(tmp_path / name / f"{k}.png")
    (tmp_path / "a" / "loop.png").symlink_to("loop.png")
    assert len(load(tmp_path)) == 6


def test_a_byte_order_mark_before_series(tmp_path):
    path = tmp_path / "x_TRAIN.ts"
    rows = "\n".join(f"{k},{k + 1},{2 * k}:{k % 2}" for k in range(8))
    path.write_text(f"@problemName x\n@classLabel true 0 1\n@data\n{rows}\n", "utf-8-sig")
    assert load(path).shape == (1, 3)


def test_boosting_is_for_tables():
    x = np.random.default_rng(0).integers(0, 255, (40, 8, 8)).astype(np.uint8)
    refused(
        "boosting is for tables, but this is image data", augury.rank, x, np.arange(40) % 2,
        ["flips"], score="boosting",
    )  # fmt: skip


@pytest.mark.parametrize("n_views", [0, 4097, 10**30])
def test_views_are_counted_in_thousands_at_most(n_views):
    message = "n_views must be a whole number from 1 to 4,096"
    refused(message, augury.rank, VALUES, np.arange(20) % 2, ["jitter(0.1)"], n_views=n_views)


@pytest.mark.parametrize("value", [(-10, 10), "10", None, np.zeros(2)])
def test_families_take_numbers(value):
    refused("rotation takes a number as degrees, got", augury.augmentations.rotation, value)
    assert repr(augury.augmentations.rotation(np.float32(10.5))) == "rotation(10.5)"


def write_labels(path: Path, labels: list[str]) -> Path:
    path.write_text("a,code\n" + "".join(f"{k}.5,{word}\n" for k, word in enumerate(labels)))
    return path


def test_labels_with_leading_zeros_are_codes_and_not_numbers(tmp_path: Path) -> None:
    for name in ("t.csv", "t.tsv"):
        path = write_labels(tmp_path / name, ["1", "01", "2"] * 4)
        if name == "t.tsv":
            path.write_text(path.read_text().replace(",", "\t"))
        assert load(path, label="code").classes == ("01", "1", "2")
    assert load(write_labels(path.with_suffix(".csv"), ["1", "10", "2"] * 4), label="code").classes
    numbers = load(write_labels(path.with_suffix(".csv"), ["0.5", "0", "0.25", "7"]), label="code")
    assert numbers.classes is None


@pytest.mark.parametrize("word", ["NA", "None", "null", "nan"])
def test_a_class_named_like_a_missing_value_is_refused(tmp_path: Path, word: str) -> None:
    path = write_labels(tmp_path / "t.csv", [word, "EU"] * 4)
    refused(f"4 labels of |t.csv are '{word}'|rename this class", load, path, label="code")
    path = write_labels(path, ["", "EU"] * 4)
    refused("4 labels are missing", load, path, label="code")


def test_classes_may_be_links_to_directories_of_recordings(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for k in range(3):
            wave = np.sin(np.arange(800) * (k + 1) / 9)
            soundfile.write(tmp_path / name / f"{k}.wav", wave, 8000)
        (tmp_path / name / "again").symlink_to(tmp_path / name)  # a loop
        (tmp_path / "data" / name).symlink_to(tmp_path / name)
    found = load(tmp_path / "data")
    assert (len(found), found.kind, found.classes) == (6, "sound", ("a", "b"))


class Pairs:
    """A dataset by index, with labels in its items or ready beside them."""

    def __init__(self, labels: list[object], ready: bool) -> None:
        self.found = labels
        if ready:
            self.targets = labels

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, k: int) -> tuple[np.ndarray, object]:
        return VALUES[k], self.found[k]


@pytest.mark.parametrize("most", [None, 10])
@pytest.mark.parametrize("missing", [math.nan, np.float32("nan"), None])
def test_a_missing_label_of_a_dataset_is_not_a_word(missing: object, most: int | None) -> None:
    labels = ["a", "b", missing, "a"] * 5
    said = "5 labels are missing or infinite"
    for ready in (True, False):
        refused(said, as_dataset, Pairs(labels, ready), max_examples=most)
    refused(said, as_dataset, Subset(Pairs(labels, True), range(20)), max_examples=most)
    refused("labels are missing", as_dataset, zip(VALUES, labels, strict=True), max_examples=most)
    refused(said, as_dataset, VALUES, labels, max_examples=most)
