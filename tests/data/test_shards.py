"""Data in shards is what it would be in memory, and only what is asked for is read."""

from __future__ import annotations

import io
import pickle
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image

import augury
from augury._base.errors import AuguryError
from augury.data import InMemory, Shards, load, load_new, open_shards
from augury.data.readers.parts import NpyPart
from augury.data.readers.tree import find_files

N = 60
CPU = torch.device("cpu")


def images(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (N, 3, 8, 8), dtype=np.uint8)
    return x, rng.integers(0, 3, N)


def write_npy(folder, x, y):
    for k in range(3):
        np.save(folder / f"x_{k:03}.npy", x[20 * k : 20 * k + 20])
        np.save(folder / f"y_{k:03}.npy", y[20 * k : 20 * k + 20])


def write_npz(folder, x, y):
    for k in range(3):
        save = np.savez_compressed if k == 1 else np.savez
        save(folder / f"part{k}.npz", x=x[20 * k : 20 * k + 20], y=y[20 * k : 20 * k + 20])


def write_tar(folder, x, y):
    for k in range(3):
        with tarfile.open(folder / f"train-{k:06}.tar", "w") as archive:
            for i in range(20 * k, 20 * k + 20):
                buffer = io.BytesIO()
                Image.fromarray(x[i].transpose(1, 2, 0)).save(buffer, "png")
                for suffix, data in ((".png", buffer.getvalue()), (".cls", str(y[i]).encode())):
                    member = tarfile.TarInfo(f"{i:05}{suffix}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))


@pytest.fixture(params=[write_npy, write_npz, write_tar])
def folder(request, tmp_path):
    request.param(tmp_path, *images())
    return tmp_path


def test_blocks_hold_every_example_once_and_in_order(folder, monkeypatch):
    monkeypatch.setattr("augury.data.stream._BLOCK", 7 * 192)
    x, y = images()
    shards = pickle.loads(pickle.dumps(open_shards(folder)))
    assert isinstance(shards, Shards)
    assert (len(shards), list(shards.bounds)) == (N, [0, 20, 40, 60])
    seen = [block for shard in shards.shards for block in shards.blocks(shard, CPU)]
    assert max(len(block) for _, block in seen) == 7
    assert torch.equal(torch.cat([index for index, _ in seen]), torch.arange(N))
    assert torch.equal(torch.cat([block.x for _, block in seen]), torch.from_numpy(x))
    assert torch.equal(torch.cat([block.y for _, block in seen]).long(), torch.from_numpy(y))


def test_a_sample_is_what_a_sample_of_the_array_is(folder):
    x, y = images()
    whole = augury.as_dataset(x, y)
    expected = whole.subsample(30, 5)
    for found in (load(folder, max_examples=30, seed=5), open_shards(folder).draw(30, 5)):
        assert torch.equal(found.x, expected.x)
        assert torch.equal(found.y, expected.y)
        assert (found.total, found.classes) == (N, expected.classes)


def test_a_sample_leaves_files_without_chosen_examples_closed(tmp_path, monkeypatch):
    write_npy(tmp_path, *images())
    read = []
    real = NpyPart._take
    monkeypatch.setattr(NpyPart, "_take", lambda p, rows: read.append(len(rows)) or real(p, rows))
    load(tmp_path, max_examples=6)
    assert sum(read) == 6


def test_parquet_shards_are_scaled_as_their_sample(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    kind = list("uv") * 20
    frames = [
        pandas.DataFrame({"a": rng.normal(5, 2, 40), "b": rng.integers(0, 9, 40), "kind": kind})
        for _ in range(2)
    ]
    for k, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"rows-{k}.parquet", row_group_size=16)
    shards = open_shards(tmp_path, label="kind")
    values = pandas.concat(frames)[["a", "b"]].to_numpy()
    expected = (values - values.mean(0)) / values.std(0)
    found = torch.cat([block.x for k in shards.shards for _, block in shards.blocks(k, CPU)])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert shards.about.classes == ("u", "v")
    np.testing.assert_allclose(shards.read(13, 19), expected[13:19], atol=1e-5)


def test_a_directory_of_images_is_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("augury.data.readers.part_images._FILES", 16)
    x, y = images()
    for i in range(N):
        (tmp_path / f"class{y[i]}").mkdir(exist_ok=True)
        pixels = Image.fromarray(x[i].transpose(1, 2, 0))
        pixels.save(tmp_path / f"class{y[i]}" / f"{i:03}.png")
    shards, whole = open_shards(tmp_path), load(tmp_path)
    assert list(shards.bounds) == [0, 16, 32, 48, 60]
    found = torch.cat([block.x for k in shards.shards for _, block in shards.blocks(k, CPU)])
    assert torch.equal(found, whole.x)
    assert torch.equal(shards.y.long(), whole.y)


def test_targets_are_those_of_the_whole():
    for y in (["a", "b", "c"] * 10, np.linspace(0, 1, 30), np.array([[0, 1], [1, 1], [1, 0]] * 10)):
        data = augury.as_dataset(np.random.default_rng(0).random((30, 4)), y)
        stream = InMemory(data, 7)
        parts = [stream.targets(index) for k in stream.shards for index, _ in stream.blocks(k, CPU)]
        assert torch.equal(torch.cat(parts), data.targets())


def test_a_shard_that_cannot_be_read_is_named(tmp_path):
    write_npy(tmp_path, *images())
    shards = open_shards(tmp_path)
    (tmp_path / "x_001.npy").unlink()
    shards.read(0, 20)
    with pytest.raises(AuguryError, match=r"the shard \S+x_001\.npy cannot be read \(No such file"):
        shards.read(20, 40)


@pytest.mark.parametrize(
    ("write", "line"),
    [
        (lambda p: np.savez(p / "a0.npz", z=1) or np.savez(p / "a1.npz", z=1), "has no array x"),
        (lambda p: [tarfile.open(p / f"{k}.tar", "w").close() for k in "01"], "has no image"),
        (lambda p: [(p / f"{k}.tar").write_bytes(b"?" * 600) for k in "01"], "cannot be read"),
    ],
)
def test_what_is_no_shard_is_refused(tmp_path, write, line):
    write(tmp_path)
    with pytest.raises(AuguryError, match=line):
        open_shards(tmp_path)


def test_what_is_not_there_or_no_format_is_refused(tmp_path):
    with pytest.raises(AuguryError, match="there is no file or directory"):
        open_shards(tmp_path / "none")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(AuguryError, match=r"expected \.npy, \.npz, \.parquet or \.tar"):
        open_shards(tmp_path / "a.txt")


def test_a_digest_changes_with_files_and_values(tmp_path):
    x, y = images()
    write_npy(tmp_path, x, y)
    before = open_shards(tmp_path).digest()
    assert before == open_shards(tmp_path).digest()
    np.save(tmp_path / "x_000.npy", x[:20, :, ::-1].copy())
    assert open_shards(tmp_path).digest() != before
    data = augury.as_dataset(x, y)
    assert InMemory(data, 9).digest() == InMemory(data, 20).digest()
    assert InMemory(data, 9).digest() != InMemory(augury.as_dataset(255 - x, y), 9).digest()


def test_a_directory_is_listed_once_and_its_files_are_not_looked_at(tmp_path, monkeypatch):
    import os

    for name in ("a", "b/deep"):
        (tmp_path / "train" / name).mkdir(parents=True)
        for k in range(3):
            (tmp_path / "train" / name / f"{k}.png").touch()
    (tmp_path / "val").mkdir()
    listed, real = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(str(path)) or real(path))
    monkeypatch.setattr(os, "stat", lambda *a, **k: pytest.fail("a file was looked at"))
    tree = find_files(tmp_path, "photos")
    monkeypatch.undo()
    assert [file.name for file in tree.files] == ["0.png", "1.png", "2.png"] * 2
    assert tree.names == ["a", "b"]
    assert len(listed) == len(set(listed)) == 6


@pytest.mark.parametrize("labelled", [True, False])
def test_all_shards_are_new_examples(tmp_path, labelled):
    """A model predicts for every file of a directory, in the order of their names."""
    x = np.random.default_rng(0).integers(0, 255, (30, 8, 8)).astype(np.uint8)
    y = np.arange(30) % 3
    for k in range(3):
        rows = slice(10 * k, 10 * k + 10)
        kept = {"x": x[rows]} | ({"y": y[rows]} if labelled or k else {})
        np.savez(tmp_path / f"part_{k}.npz", **kept)
    found = load_new(tmp_path, None, shape=(1, 8, 8), real=False)
    assert found.x.shape == (30, 1, 8, 8)
    assert np.array_equal(found.x[:, 0], x)
    assert found.name == tmp_path.name
    assert (found.y is not None) is labelled
    assert not labelled or found.y.tolist() == [str(c) for c in y]
    assert len(found.notes) == len(set(found.notes)) >= 1
