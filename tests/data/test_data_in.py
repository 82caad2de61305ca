"""Data from what people use: frames, loaders, Hugging Face, iterables, archives, lists of files."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from refusal import refused
from torch.utils.data import DataLoader, IterableDataset, SubsetRandomSampler, TensorDataset

import augury
from augury.data import as_dataset, load, load_new
from augury.data.readers import archive, iterables

X = np.random.default_rng(0).integers(0, 256, (12, 6, 5), dtype=np.uint8)
Y = np.arange(12) % 3
FRAME = pd.DataFrame(
    {
        "a": np.linspace(0, 1, 12),
        "colour": ["red", "blue", "red"] * 4,
        "kind": ["x", "y"] * 6,
        "n": np.arange(12) * 3,
    }
)


def as_png(pixels: np.ndarray) -> bytes:
    raw = io.BytesIO()
    Image.fromarray(pixels).save(raw, "PNG")
    return raw.getvalue()


# Frames


@pytest.mark.parametrize("library", ["pandas", "polars", "polars lazy", "pyarrow"])
def test_frames_are_read_as_tables_are(library: str, tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    expected = load(tmp_path / "t.csv", label="kind")
    given: Any = FRAME
    if library.startswith("polars"):
        pl = pytest.importorskip("polars", reason="comes with the extra dev")
        given = pl.DataFrame(FRAME.to_dict(orient="list"))
        given = given.lazy() if library.endswith("lazy") else given
    elif library == "pyarrow":
        given = pytest.importorskip("pyarrow").Table.from_pandas(FRAME)
    data = as_dataset(given, label="kind")
    assert torch.equal(data.x, expected.x)
    assert data.classes == expected.classes == ("x", "y")
    assert data.preparation == expected.preparation
    refused("the frame has no column 'kinds'; did you mean kind?", as_dataset, given, label="kinds")
    refused("which column of the frame is the label", as_dataset, given)


def test_a_frame_beside_labels_and_a_number_to_predict() -> None:
    data = as_dataset(FRAME.drop(columns="kind"), FRAME["kind"])
    assert data.shape == (4,)
    assert "one-hot encoded: colour" in " ".join(data.notes)
    real = as_dataset(FRAME, label="n", task="regression")
    assert real.classes is None
    assert real.labels().tolist() == FRAME["n"].tolist()


# torch


def test_the_dataset_inside_a_loader_is_read() -> None:
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    expected = as_dataset(X, Y)
    data = as_dataset(DataLoader(TensorDataset(x, y), batch_size=5, shuffle=True))
    assert torch.equal(data.x, expected.x)
    assert torch.equal(data.y, expected.y)
    assert data.notes == ("the dataset inside the loader was read, example by example",)
    part = DataLoader(TensorDataset(x, y), sampler=SubsetRandomSampler([0, 1, 2, 3, 4, 5]))
    assert torch.equal(as_dataset(part).x, expected.x[:6])


class Stream(IterableDataset):
    """A dataset without an index."""

    def __iter__(self) -> Iterator[tuple[np.ndarray, int]]:
        yield from zip(X, Y.tolist(), strict=True)


def test_iterable_datasets_of_torch() -> None:
    expected = as_dataset(X, Y)
    for given in (Stream(), DataLoader(Stream(), batch_size=4)):
        data = as_dataset(given)
        assert torch.equal(data.x, expected.x)
        assert torch.equal(data.y, expected.y)


def test_torchvision_images_of_several_sizes() -> None:
    class Photos:
        """As torchvision's ImageFolder: pairs of a Pillow image and a number."""

        classes = ("cat", "dog")
        targets = tuple(k % 2 for k in range(8))

        def __len__(self) -> int:
            return 8

        def __getitem__(self, k: int) -> tuple[Image.Image, int]:
            side = 300 if k == 5 else 20 + k
            picture = Image.fromarray(np.full((side, side + 4), 30 * k, dtype=np.uint8))
            return (picture.convert("RGB") if k == 2 else picture), self.targets[k]

    data = as_dataset(Photos())
    assert data.shape == (3, 23, 23)  # the median of 20, 21, 22, 23, 24, 300, 26 and 27
    np.testing.assert_array_equal(data.x[:, 0, 5, 5].numpy(), 30 * np.arange(8))
    assert "images of 8 sizes were resized to 23 × 23" in data.notes[0]
    assert data.classes == ("cat", "dog")
    assert as_dataset(Photos(), size=8).shape == (3, 8, 8)


# Iterables


def test_any_iterable_of_pairs_is_read_once_up_to_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def endless() -> Iterator[tuple[np.ndarray, str]]:
        k = 0
        while True:
            read.append(k)
            yield np.full(3, float(k)), "ab"[k % 2]
            k += 1

    monkeypatch.setattr(iterables, "MOST_ITEMS", 200)
    data = as_dataset(endless(), max_examples=50, seed=1)
    assert len(data) == 50
    assert len(read) == 201
    assert data.classes == ("a", "b")
    assert "only the first 200 examples of the iterable were read" in data.notes
    assert "50 of 200 examples were used, sampled with seed 1" in data.notes
    assert bool((data.x[1:] > data.x[:-1]).all())  # in their order
    assert torch.equal(data.x, as_dataset(endless(), max_examples=50, seed=1).x)
    assert float(data.x.max()) > 1.4  # from all of them, not the first 50 only
    refused("iterable is empty", as_dataset, iter([]))
    refused("item 0|expected a pair", as_dataset, iter([3]))
    refused("labels are missing", as_dataset, 3)


def test_each_example_of_an_iterable_is_as_likely() -> None:
    hits = np.zeros(30)
    for seed in range(300):
        items = ((np.array([float(k)]), k % 2) for k in range(30))
        kept = iterables.read_iterable(items, iterables.Request(max_examples=10, seed=seed))
        hits[kept.x[:, 0].astype(int)] += 1
    assert np.abs(hits - 100).max() < 45  # a third of 300 each, with a standard deviation of 8


@pytest.mark.filterwarnings("ignore")  # TensorFlow's own, on import
def test_tf_data(monkeypatch: pytest.MonkeyPatch) -> None:
    tf = pytest.importorskip("tensorflow", reason="has wheels for Linux on x86 in the extra dev")
    expected = as_dataset(X, Y)
    whole = tf.data.Dataset.from_tensor_slices((X, Y))
    for given in (whole, whole.batch(5), whole.batch(5).prefetch(1)):
        data = as_dataset(given)
        assert torch.equal(data.x, expected.x)
        assert torch.equal(data.y, expected.y)
    named = whole.map(lambda image, label: {"image": image, "label": label})
    assert torch.equal(as_dataset(named).x, expected.x)
    monkeypatch.setattr(iterables, "MOST_ITEMS", 200)
    endless = as_dataset(whole.repeat(), max_examples=30)
    assert len(endless) == 30
    assert "only the first 200 examples of the iterable were read" in endless.notes


def test_batches_as_tf_data_has_them() -> None:
    class Eager:
        """As TensorFlow's tensors: an array behind ``numpy()``."""

        def __init__(self, values: np.ndarray) -> None:
            self.values = values

        def numpy(self) -> np.ndarray:
            return self.values

    expected = as_dataset(X, Y)
    batches = [(Eager(X[i : i + 5]), Eager(Y[i : i + 5])) for i in range(0, 12, 5)]
    assert torch.equal(as_dataset(iter(batches)).x, expected.x)
    single = [(Eager(X[i]), Eager(Y[i])) for i in range(12)]
    assert torch.equal(as_dataset(iter(single)).x, expected.x)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # webdataset leaves its files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_webdataset(tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset", reason="comes with the extra dev")
    with tarfile.open(tmp_path / "shard.tar", "w") as shard:
        for k in range(12):
            for suffix, content in (("png", as_png(X[k])), ("cls", str(Y[k]).encode())):
                about = tarfile.TarInfo(f"{k:03}.{suffix}")
                about.size = len(content)
                shard.addfile(about, io.BytesIO(content))
    expected = as_dataset(X, Y)
    plain = wds.WebDataset(str(tmp_path / "shard.tar"), shardshuffle=False)
    for given in (plain, plain.decode("pil").to_tuple("png", "cls")):
        data = as_dataset(given)
        assert torch.equal(data.y, expected.y)
        np.testing.assert_array_equal(data.x[:, 0].numpy(), X)


# Hugging Face


def hugging_face(**columns: Any) -> Any:
    datasets = pytest.importorskip("datasets", reason="comes with the extra dev")
    return datasets.Dataset.from_dict(
        {"image": [{"bytes": as_png(p), "path": None} for p in X], "label": Y.tolist(), **columns},
        features=datasets.Features(
            {
                "image": datasets.Image(),
                "label": datasets.ClassLabel(names=["ape", "bee", "cat"]),
                **{name: datasets.Value("int64") for name in columns},
            }
        ),
    )


def test_hugging_face_images() -> None:
    given = hugging_face(coarse=[k % 2 for k in range(12)])
    data = as_dataset(given)
    np.testing.assert_array_equal(data.x[:, 0].numpy(), X)
    assert data.classes == ("ape", "bee", "cat")
    assert data.y.tolist() == Y.tolist()
    assert as_dataset(given, label="coarse").classes == ("0", "1")
    assert torch.equal(as_dataset(given.with_format("torch")).x, data.x)
    assert len(as_dataset(given, max_examples=6)) == 6
    stream = as_dataset(given.to_iterable_dataset())
    assert torch.equal(stream.x, data.x)
    assert stream.classes == data.classes
    parts = as_dataset({"train": given, "test": given.select([0])})
    assert torch.equal(parts.x, data.x)
    assert parts.notes[0] == "train was read, but not test"
    refused("no entry 'lable'; did you mean label?", as_dataset, given, label="lable")


def test_hugging_face_columns_are_a_table() -> None:
    datasets = pytest.importorskip("datasets", reason="comes with the extra dev")
    given = datasets.Dataset.from_pandas(FRAME)
    assert torch.equal(as_dataset(given, label="kind").x, as_dataset(FRAME, label="kind").x)
    refused("which column of the dataset is the label", as_dataset, given)


# Files


def test_mapped_arrays_are_not_loaded_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "x_train.npy", X)
    np.save(tmp_path / "y_train.npy", Y)
    expected = as_dataset(X, Y)
    for path in (tmp_path / "x_train.npy", tmp_path):
        data = load(path)
        assert torch.equal(data.x, expected.x)
        assert data.y.tolist() == Y.tolist()
    mapped = np.load(tmp_path / "x_train.npy", mmap_mode="r")
    part = as_dataset(mapped, Y, max_examples=6)
    assert torch.equal(part.x, as_dataset(X, Y, max_examples=6).x)
    (tmp_path / "y_train.npy").unlink()
    refused("no labels next to|x.npy and y.npy", load, tmp_path / "x_train.npy")
    new = load_new(tmp_path / "x_train.npy", data.preparation, shape=data.shape, real=False)
    assert new.y is None
    np.testing.assert_array_equal(new.x, data.x.numpy())
    np.save(tmp_path / "x_train.npy", np.array([{}]), allow_pickle=True)
    refused("x_train.npy is not an .npy file of numbers", load, tmp_path / "x_train.npy")


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, content in members.items():
            made.writestr(name, content)
    return path


def write_tar(path: Path, members: dict[str, bytes], link: str = "") -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as made:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            made.addfile(about, io.BytesIO(content))
        if link:
            about = tarfile.TarInfo(link)
            about.type, about.linkname = tarfile.SYMTYPE, "/etc/passwd"
            made.addfile(about)
    return path


MEMBERS = {f"photos/{'abc'[k % 3]}/{k:02}.png": as_png(X[k]) for k in range(12)}
WRITERS: dict[str, Callable[[Path, dict[str, bytes]], Path]] = {
    "p.zip": write_zip,
    "p.tar": write_tar,
    "p.tar.gz": write_tar,
    "p.tgz": write_tar,
}


@pytest.mark.parametrize("name", WRITERS)
def test_archives_of_images(name: str, tmp_path: Path) -> None:
    data = load(WRITERS[name](tmp_path / name, MEMBERS | {"photos/README.md": b"text"}))
    np.testing.assert_array_equal(data.x[:, 0].numpy(), np.concatenate([X[k::3] for k in range(3)]))
    assert data.classes == ("a", "b", "c")
    assert data.notes == ("1 file of other kinds in the archive was not read",)
    assert len(load(tmp_path / name, max_examples=6)) == 6
    parts = {n.replace("photos", f"d/{p}"): c for n, c in MEMBERS.items() for p in ("train", "val")}
    split = load(WRITERS[name](tmp_path / name, parts))
    assert len(split) == 12
    assert split.notes == ("train/ was read, but not val",)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    "evil", ["../evil.png", "/tmp/evil.png", "a/../../evil.png", "..\\evil.png", "C:\\evil.png"]
)
def test_archives_that_lead_out_are_refused(name: str, evil: str, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    path = WRITERS[name](inside / name, MEMBERS | {evil: as_png(X[0])})
    refused("was rejected|points outside of the archive", load, path)
    assert [p.name for p in tmp_path.iterdir()] == ["inside"]
    assert [p.name for p in inside.iterdir()] == [name]


def test_other_bad_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused("is a link", load, write_tar(tmp_path / "l.tar", MEMBERS, link="photos/a/l.png"))
    (tmp_path / "d.zip").write_bytes(b"PK nothing")
    refused("d.zip is damaged or cut short", load, tmp_path / "d.zip")
    refused("has no images", load, write_zip(tmp_path / "e.zip", {"a.txt": b""}))
    monkeypatch.setattr(archive, "MOST_BYTES", 200)
    refused("unpacks to more than", load, write_zip(tmp_path / "b.zip", MEMBERS))


def test_a_table_that_lists_images(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for k in range(12):
        Image.fromarray(X[k]).save(tmp_path / "photos" / f"{k}.png")
    frame = pd.DataFrame({"file": [f"{k}.png" for k in range(12)], "class": [*"abc"] * 4})
    path = tmp_path / "labels.csv"
    frame.to_csv(path, index=False)
    data = load(path)
    np.testing.assert_array_equal(data.x[:, 0].numpy(), X)
    assert data.classes == ("a", "b", "c")
    assert data.notes == ("the images that the column file lists were read",)
    assert load(path, size=4, max_examples=6).x.shape == (6, 1, 4, 4)
    frame.assign(age=np.linspace(20, 30.5, 12)).to_csv(path, index=False)
    refused("which column|file, class and age", load, path)
    assert load(path, label="age").classes is None
    assert "other columns were not used: age" in load(path, label="class").notes
    new = load_new(path, data.preparation, shape=data.shape, real=False, label="class")
    assert new.y is not None
    assert new.y.tolist() == [*"abc"] * 4
    frame.loc[3, "file"] = "missing.png"
    frame.to_csv(path, index=False)
    refused("1 of the 12 files|labels.csv|missing.png|correct their names", load, path)


def test_paths_are_read_by_as_dataset_too() -> None:
    assert torch.equal(as_dataset("digits", max_examples=100).x, load("digits", max_examples=100).x)


def test_a_frame_is_ranked_by_its_label() -> None:
    frame = pd.concat([FRAME] * 4, ignore_index=True)
    found = augury.rank(frame, None, ["jitter(0.1)"], label="kind", score="alignment")
    assert found.dataset["classes"] == ["x", "y"]
    real = augury.rank(
        frame, None, ["jitter(0.1)"], label="n", task="regression", score="alignment"
    )
    assert real.dataset["classes"] is None
