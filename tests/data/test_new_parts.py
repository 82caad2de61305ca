"""New examples for a model come from the test part of a directory, where it has one."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from augury.data import load, load_new
from augury.data.new import NewExamples

TRAIN = np.random.default_rng(0).integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
TEST = TRAIN[::-1][:5].copy()
Y = np.arange(12) % 2
FROM_TEST = "the directory's test images were read, not its training images"
FROM_TRAIN = "the directory's training images were read: it has no test images"


def read(folder: Path) -> NewExamples:
    data = load(folder)
    assert len(data) == 12
    return load_new(folder, data.preparation, shape=data.shape, real=False)


def dump(path: Path, label: str, x: np.ndarray) -> None:
    labels = Y[: len(x)].tolist()
    path.write_bytes(pickle.dumps({"data": x.reshape(len(x), -1), label: labels}))


@pytest.mark.parametrize(
    ("train", "test", "label"),
    [("data_batch_1", "test_batch", "labels"), ("train", "test", "fine_labels")],
)
def test_cifar(train: str, test: str, label: str, tmp_path: Path) -> None:
    (tmp_path / "meta").write_bytes(pickle.dumps({}))
    dump(tmp_path / train, label, TRAIN)
    found = read(tmp_path)
    assert len(found.x) == 12
    assert found.notes[-1] == FROM_TRAIN
    dump(tmp_path / test, label, TEST)
    found = read(tmp_path)
    assert np.array_equal(found.x, TEST)
    assert found.notes == (FROM_TEST,)


def write_idx(folder: Path, part: str, x: np.ndarray) -> None:
    y = Y[: len(x)].astype(np.uint8)
    for name, values in ((f"{part}-images-idx3-ubyte", x), (f"{part}-labels-idx1-ubyte", y)):
        head = struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
        (folder / name).write_bytes(head + values.tobytes())


def test_idx(tmp_path: Path) -> None:
    write_idx(tmp_path, "train", TRAIN[:, 0])
    assert read(tmp_path).notes == (FROM_TRAIN,)
    write_idx(tmp_path, "t10k", TEST[:, 0])
    found = read(tmp_path)
    assert np.array_equal(found.x, TEST[:, :1])
    assert found.notes == (FROM_TEST,)


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize(
    ("x", "y"), [("x_train", "y_train"), ("X-TRAIN", "Y-TRAIN"), ("train_images", "train_labels")]
)
def test_npy(x: str, y: str, labelled: bool, tmp_path: Path) -> None:
    np.save(tmp_path / f"{x}.npy", TRAIN)
    np.save(tmp_path / f"{y}.npy", Y)
    assert read(tmp_path).notes == (f"{x}.npy was read: the directory has no test part",)
    for part in ("val", "test"):
        values = TEST if part == "test" else TRAIN
        for name, array in ((x, values), (y, Y[: len(values)])):
            new = name.replace("train", part).replace("TRAIN", part.upper())
            if name == x or labelled:
                np.save(tmp_path / f"{new}.npy", array)
        found = read(tmp_path)
        assert np.array_equal(found.x, values)
        assert (found.y is not None) == labelled
        assert not any("part" in note for note in found.notes)


def test_npy_without_parts(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", TRAIN)
    np.save(tmp_path / "y.npy", Y)
    assert read(tmp_path).notes == ()
