"""MNIST and CIFAR-10 from where the public gets them: checked, and written whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import tarfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from augury._base.errors import AuguryError
from augury._base.files import write

_STEP = 1 << 20
_BATCHES = ("batches.meta", *(f"data_batch_{k}" for k in range(1, 6)), "test_batch")
_LIMIT = 1 << 29  # bytes: no file of these is as large, and what never ends must not fill memory


@dataclass(frozen=True)
class Remote:
    """A file to fetch: its name, its published md5 and the addresses that offer it."""

    name: str
    md5: str
    addresses: tuple[str, ...]


_MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
REMOTES = {
    "mnist": tuple(
        Remote(name, md5, tuple(base + name for base in _MNIST))
        for name, md5 in (
            ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
            ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
            (
                "t10k-images-idx3-ubyte.gz",
                "9fb629c4189551a2d022fa330f9573f3",
            ),  # last: it tells a whole set
        )
    ),
    "cifar10": (
        Remote(
            "cifar-10-python.tar.gz",
            "c58f30108f718f92721af3b95e74349a",
            ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
        ),
    ),
}

Tick = Callable[[int, int, str], None]


def download(name: str, folder: Path, tick: Tick = lambda done, total, now: None) -> None:
    """Fetch a data set into a folder; what is there already is left alone.

    Parameters
    ----------
    name
        A key of `REMOTES`.
    folder
        Made if it is not there.
    tick
        Called with (bytes, bytes in all, file).
    """
    for remote in REMOTES[name]:
        place = folder / name
        if name == "mnist" and (place / remote.name).is_file():
            continue
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AuguryError(f"cannot make the folder {place}: {error.strerror}") from None
        content = fetch(remote, tick)
        if remote.name.endswith(".tar.gz"):
            _unpack(content, place)
        else:
            write(place / remote.name, content)


def fetch(remote: Remote, tick: Tick = lambda done, total, now: None) -> bytes:
    """Return the bytes of a remote file from the first address that gives the right ones."""
    reasons = []
    for address in remote.addresses:
        host = address.split("/")[2]
        try:
            content = _read(address, remote.name, tick)
        except (OSError, ValueError, http.client.HTTPException) as error:
            reasons.append(f"{host}: {getattr(error, 'reason', None) or error}")
            continue
        found = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if found == remote.md5:
            return content
        reasons.append(f"{host}: its md5 is {found}, expected {remote.md5}")
    raise AuguryError(
        f"cannot download {remote.name} ({'; '.join(reasons)}); try again, or put the file into "
        "the data folder yourself"
    )


def _read(address: str, name: str, tick: Tick) -> bytes:
    with contextlib.closing(urllib.request.urlopen(address, timeout=30)) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        parts, done = [], 0
        while part := answer.read(_STEP):
            parts.append(part)
            done += len(part)
            if done > _LIMIT:
                raise ValueError(f"more than {_LIMIT:,} bytes came")
            tick(done, max(total, done), name)
    return b"".join(parts)


def _unpack(content: bytes, place: Path) -> None:
    """Write CIFAR's batches and nothing else; the test batch last: it tells a whole set."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        members = {Path(m.name).name: m for m in archive.getmembers() if m.isfile()}
        for name in _BATCHES:
            file = archive.extractfile(members[name]) if name in members else None
            if file is not None:
                write(place / name, file.read())
