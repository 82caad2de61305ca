"""The paper's data sets: found in the forms they come in, or fetched and checked."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import io
import pickle
import struct
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusal import refused

from augury._base.errors import AuguryError
from augury_paper import PAPER, QUICK, download, run
from augury_paper.images import Library

RNG = np.random.default_rng(0)


def _arrays(shape: tuple[int, ...], train: int = 40, test: int = 20) -> dict[str, np.ndarray]:
    def pixels(count: int) -> np.ndarray:
        return RNG.integers(0, 256, (count, *shape), dtype=np.uint8)

    return {
        "x_train": pixels(train),
        "y_train": np.arange(train) % 10,
        "x_test": pixels(test),
        "y_test": np.arange(test) % 10,
    }


def _idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(head + array.astype(np.uint8).tobytes())


def _mnist_files(arrays: dict[str, np.ndarray]) -> dict[str, bytes]:
    return {
        "train-images-idx3-ubyte.gz": _idx(arrays["x_train"]),
        "train-labels-idx1-ubyte.gz": _idx(arrays["y_train"]),
        "t10k-labels-idx1-ubyte.gz": _idx(arrays["y_test"]),
        "t10k-images-idx3-ubyte.gz": _idx(arrays["x_test"]),
    }


def _cifar_files(arrays: dict[str, np.ndarray]) -> dict[str, bytes]:
    def batch(x: np.ndarray, y: np.ndarray) -> bytes:
        rows = x.transpose(0, 3, 1, 2).reshape(len(x), -1)
        return pickle.dumps({"data": rows, "labels": y.tolist()}, protocol=2)

    parts = zip(np.split(arrays["x_train"], 5), np.split(arrays["y_train"], 5), strict=True)
    files = {f"data_batch_{k + 1}": batch(x, y) for k, (x, y) in enumerate(parts)}
    return {**files, "test_batch": batch(arrays["x_test"], arrays["y_test"])}


def _check(library: Library, name: str, arrays: dict[str, np.ndarray]) -> None:
    images = library.images(name)
    for part, key in ((images.train, "train"), (images.test, "test")):
        x = arrays[f"x_{key}"]
        wanted = x[:, None] if x.ndim == 3 else x.transpose(0, 3, 1, 2)
        assert np.array_equal(part.x.numpy(), wanted)
        assert part.y.tolist() == arrays[f"y_{key}"].tolist()
        assert part.x.is_contiguous()


def test_archives_are_found(tmp_path: Path) -> None:
    shapes = {"mnist": (28, 28), "cifar10": (32, 32, 3)}
    for name, shape in shapes.items():
        arrays = _arrays(shape)
        np.savez(tmp_path / f"{name}.npz", **arrays)  # type: ignore[arg-type]  # as numpy types it
        _check(Library(tmp_path, PAPER), name, arrays)


def test_mammograms_are_found_by_either_name(tmp_path: Path) -> None:
    arrays = _arrays((64, 64))
    np.savez(tmp_path / "cbis_ddsm_mass_64.npz", **arrays)  # type: ignore[arg-type]  # as numpy types it
    _check(Library(tmp_path, PAPER), "mammograms", arrays)


@pytest.mark.parametrize("folder", ["", "mnist"])
def test_idx_files_are_found(tmp_path: Path, folder: str) -> None:
    arrays = _arrays((28, 28))
    (tmp_path / folder).mkdir(exist_ok=True)
    for name, content in _mnist_files(arrays).items():
        (tmp_path / folder / name).write_bytes(content)
    _check(Library(tmp_path, PAPER), "mnist", arrays)


def test_cifar_batches_are_found(tmp_path: Path) -> None:
    arrays = _arrays((32, 32, 3))
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name, content in _cifar_files(arrays).items():
        (folder / name).write_bytes(content)
    _check(Library(tmp_path, PAPER), "cifar10", arrays)


def test_settings_say_how_many_examples(tmp_path: Path) -> None:
    np.savez(tmp_path / "mnist.npz", **_arrays((28, 28), 200, 100))  # type: ignore[arg-type]  # as numpy types it
    images = Library(tmp_path, replace(QUICK, examples=50, tests=20)).images("mnist")
    assert (len(images.train), len(images.test)) == (50, 20)
    assert set(images.train.y.tolist()) == set(range(10))


def test_quick_falls_back_on_the_embedded_digits(tmp_path: Path) -> None:
    library = Library(tmp_path, QUICK)
    assert library.source("mnist") == "mnist5k"
    assert library.missing("mnist") == ""
    images = library.images("mnist")
    assert (len(images.train), len(images.test)) == (QUICK.examples, QUICK.tests)
    assert np.bincount(images.test.y.numpy()).tolist() == [QUICK.tests // 10] * 10
    assert "mnist was not found" in Library(tmp_path, PAPER).missing("mnist")


def test_a_bad_archive_is_one_line(tmp_path: Path) -> None:
    np.savez(tmp_path / "mnist.npz", x_train=np.zeros(3), y_train=np.zeros(3))
    words = "has no x_test and no y_test; expected x_train, y_train, x_test, y_test"
    refused(words, Library(tmp_path, PAPER).images, "mnist")
    (tmp_path / "mnist.npz").write_bytes(b"PK\x03\x04 cut")
    words = "cannot be read as an .npz archive; get it again"
    refused(words, Library(tmp_path, PAPER).images, "mnist")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Serve a folder over HTTP on this machine."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def _remote(base: str, name: str, content: bytes, *more: str) -> download.Remote:
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return download.Remote(name, md5, (*more, base + name))


def test_mnist_is_fetched_and_checked(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, base = served
    arrays = _arrays((28, 28))
    remotes = []
    for name, content in _mnist_files(arrays).items():
        (folder / name).write_bytes(content)
        # the first address has nothing, the second serves it
        remotes.append(_remote(base, name, content, base + "nowhere/" + name))
    monkeypatch.setitem(download.REMOTES, "mnist", tuple(remotes))
    ticks: list[tuple[int, int, str]] = []
    download.download("mnist", tmp_path / "data", lambda *at: ticks.append(at))
    _check(Library(tmp_path / "data", PAPER), "mnist", arrays)
    assert {name for _, _, name in ticks} == set(_mnist_files(arrays))
    for path in folder.iterdir():
        path.unlink()
    download.download("mnist", tmp_path / "data")  # all there: nothing is asked for


def test_cifar_is_fetched_and_unpacked(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, base = served
    arrays, packed = _arrays((32, 32, 3)), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in {**_cifar_files(arrays), "../../evil": b"x"}.items():
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    (folder / "c.tar.gz").write_bytes(packed.getvalue())
    monkeypatch.setitem(
        download.REMOTES, "cifar10", (_remote(base, "c.tar.gz", packed.getvalue()),)
    )
    download.download("cifar10", tmp_path / "data")
    _check(Library(tmp_path / "data", PAPER), "cifar10", arrays)
    assert not list(tmp_path.parent.rglob("evil"))


def test_a_wrong_checksum_leaves_nothing_behind(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, base = served
    (folder / "a.gz").write_bytes(b"not what was published")
    remote = download.Remote("a.gz", "0" * 32, (base + "a.gz", base + "missing"))
    monkeypatch.setitem(download.REMOTES, "mnist", (remote,))
    with pytest.raises(AuguryError) as caught:
        download.download("mnist", tmp_path / "data")
    message = str(caught.value)
    assert message.startswith("cannot download a.gz (127.0.0.1:")
    assert "its md5 is" in message
    assert "put the file into the data folder yourself" in message
    assert "\n" not in message
    assert not list((tmp_path / "data").rglob("*.gz"))


def test_a_run_fetches_what_is_missing_and_goes_on_without_what_it_cannot_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(name: str, folder: Path, tick: object) -> None:
        asked.append(name)
        raise AuguryError(f"cannot download {name}")

    monkeypatch.setattr(run, "download", refuse)
    said: list[str] = []
    run.reproduce(
        (), out=tmp_path / "out", data=tmp_path, settings=PAPER, fetch=True, say=said.append
    )
    assert asked == ["mnist", "cifar10"]  # the mammograms have no address
    assert said[1] == "cannot download mnist"
    np.savez(tmp_path / "mnist.npz", **_arrays((28, 28)))  # type: ignore[arg-type]  # as numpy types it
    run.reproduce((), out=tmp_path / "out", data=tmp_path, settings=PAPER, fetch=True)
    assert asked == ["mnist", "cifar10", "cifar10"]
