"""Mutated data files, of every format that is read."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import random
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from augury.data import Preparation, load, load_new

from .bytes import NUMBERS, WORDS, mutate, mutate_text
from .sounds import sounds

X = np.random.default_rng(0).integers(0, 256, (12, 6, 5), dtype=np.uint8)
Y = np.arange(12) % 3
DTYPES = (
    "|u1", "<i8", ">f4", "<f2", "<f16", "|O", "|V8", "<U3", "|S2", "|b1", "<c8", "<M8[ns]", "|u8",
    "[('a', '<i4')]", "<U99999999", "", "O", "0", "<f999", "|u1,|u1",
)  # fmt: skip
SIDES = (
    "0", "1", "12", "-1", "True", "None", "2.0", "'a'", "1e3", "9223372036854775807", "(1,)",
    "9223372036854775808", "99999999999999999999999", "1 << 99", "x", "12,)#", "[12]", "0x0c",
)  # fmt: skip

# Files of numbers


def _header(rng: random.Random, shape: tuple[int, ...]) -> bytes:
    """Write the header of an .npy file with one or two entries that are odd."""
    sides = [str(side) for side in shape]
    descr, order = "'|u1'", "False"
    for _ in range(rng.choice((0, 1, 1, 2))):
        how = rng.randrange(5)
        if how == 0:
            sides[rng.randrange(len(sides))] = rng.choice(SIDES)
        elif how == 1:
            descr = rng.choice(DTYPES) if rng.random() < 0.1 else repr(rng.choice(DTYPES))
        elif how == 2:
            order = rng.choice(("True", "None", "3", "'x'"))
        elif how == 3:
            sides.append(rng.choice(SIDES))
        else:
            sides.pop()
        sides = sides or [""]
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': ({', '.join(sides)},), }}"
    if rng.random() < 0.3:
        text = mutate_text(text, rng)
    body = text.encode("utf-8", "replace") + b"\n"
    version = rng.choice((b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\4\0"))
    length = struct.pack("<H", len(body) % 65536)
    if version != b"\1\0":
        length = struct.pack("<I", len(body))
    return b"\x93NUMPY" + version + length + body


def npz(rng: random.Random, directory: Path) -> Path:
    """Write an archive whose arrays have odd headers, or whose bytes are changed."""
    path = directory / "a.npz"
    method = rng.choice(
        (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)
    )
    odd = rng.random() < 0.6
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, values in (("x", X), ("y", Y.astype(np.uint8))):
            raw = io.BytesIO()
            np.save(raw, values)
            data = raw.getvalue()
            if odd and rng.random() < 0.7:
                data = _header(rng, values.shape) + values.tobytes()
            archive.writestr(f"{name}.npy", data)
    if not odd:
        path.write_bytes(mutate(path.read_bytes(), rng))
    return path


def idx(rng: random.Random, directory: Path) -> Path:
    """Write MNIST's pair of files, plain or packed, one of them changed."""
    which = rng.randrange(2)
    for place, (name, values) in enumerate(
        (("images-idx3", X), ("labels-idx1", Y.astype(np.uint8)))
    ):
        sides = list(values.shape)
        code, count = 8, len(sides)
        if place == which and rng.random() < 0.5:
            how = rng.randrange(3)
            if how == 0:
                code = rng.choice((0, 8, 9, 10, 11, 12, 13, 14, 255))
            elif how == 1:
                count = rng.choice((0, 1, 2, 4, 5, 64, 65, 255))
                sides += [rng.choice((0, 1, 1, 2))] * count
            else:
                sides[rng.randrange(len(sides))] = rng.choice(NUMBERS) % 2**32
        head = struct.pack(f">4B{count}I", 0, 0, code, count, *(sides + [1] * count)[:count])
        data = head + values.tobytes()
        packed = rng.random() < 0.4
        if place == which and rng.random() < 0.3:
            data = mutate(data, rng)
        data = gzip.compress(data) if packed else data
        if place == which and rng.random() < 0.3:
            data = mutate(data, rng)
        (directory / f"train-{name}-ubyte{'.gz' if packed else ''}").write_bytes(data)
    return directory


class _Array:
    """Pickles as an array whose state never comes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return np.ndarray(0).__reduce__()[:2]  # type: ignore[index, return-value]  # a tuple of 3


class _Program:
    """Pickles as a call that starts a program."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("true",)


def cifar(rng: random.Random, directory: Path) -> Path:
    """Write a batch of CIFAR with odd entries or changed bytes."""
    pixels = np.random.default_rng(1).integers(0, 256, (12, 3072), dtype=np.uint8)
    odd: list[Any] = [
        3, "cat", {"a": 1}, [[1], [1, 2]], None, [None] * 12, ["a"] * 12, [0.5] * 12, _Array(), b"",
        _Program(), list(range(12)), [2**70] * 12, np.float32(3), Y.reshape(3, 4), (), {1, 2}, True,
        Y.astype("datetime64[s]"), Y.astype(complex), np.array(["a", 3], dtype=object), [[]] * 12,
        [float("nan")] * 12, Y.tolist(), [b"x", b"y"] * 6, np.zeros((12, 0)), [-1, 99] * 6,
    ]  # fmt: skip
    items: dict[Any, Any] = {"data": pixels, "labels": Y.tolist()}
    fine = rng.random() < 0.3
    for key in ("data", "labels"):
        if rng.random() < 0.3:
            items[key] = rng.choice(odd)
    if fine:
        items["fine_labels"] = items.pop("labels")
    protocol = rng.choice((0, 1, 2, 3, 4, 5))
    data = pickle.dumps(items, protocol)
    if rng.random() < 0.4:
        data = mutate(data, rng)
    (directory / ("train" if fine else "data_batch_1")).write_bytes(data)
    names: Any = rng.choice((["a", "b", "c"], ["a", "a", "a"], [], ["a"], "abc", [1, 2, 3], 7))
    meta = pickle.dumps({"fine_label_names" if fine else "label_names": names}, protocol)
    meta = mutate(meta, rng) if rng.random() < 0.2 else meta
    if fine or rng.random() < 0.5:
        (directory / ("meta" if fine else "batches.meta")).write_bytes(meta)
    return directory


# Tables


def _frame(rng: random.Random) -> pd.DataFrame:
    numbers = np.random.default_rng(2).normal(size=(12, 2)).round(3)
    return pd.DataFrame(
        {
            "a": numbers[:, 0],
            "b": numbers[:, 1],
            "c": [rng.choice(("red", "blue")) for _ in range(12)],
            "y": Y,
        }
    )


def text_table(rng: random.Random, directory: Path) -> Path:
    """Write a table as text, with odd cells, names, quotes and bytes."""
    path = directory / rng.choice(("t.csv", "t.tsv"))
    rows = [list(map(str, row)) for row in _frame(rng).itertuples(index=False)]
    rows.insert(0, ["a", "b", "c", "y"])
    for _ in range(rng.choice((0, 1, 1, 2, 6))):
        row = rng.choice(rows)
        how = rng.randrange(4)
        if how < 2 and row:
            row[rng.randrange(len(row))] = rng.choice(WORDS)
        elif how == 2:
            row.append(rng.choice(WORDS))
        elif row:
            row.pop()
    separator = "\t" if path.suffix == ".tsv" else ","
    data = "\n".join(separator.join(row) for row in rows).encode("utf-8", "surrogatepass")
    path.write_bytes(mutate(data, rng) if rng.random() < 0.4 else data)
    return path


def parquet(rng: random.Random, directory: Path) -> Path:
    """Write a Parquet table with odd metadata, types or bytes."""
    path = directory / "t.parquet"
    table = pa.Table.from_pandas(_frame(rng))
    how = rng.randrange(4)
    if how == 0:
        pandas = json.loads((table.schema.metadata or {})[b"pandas"])
        for _ in range(rng.choice((1, 2))):
            key = rng.choice(tuple(pandas))
            pandas[key] = rng.choice((None, 3, "x", [], {}, [{}], [None], {"a": 1}, [["x"]]))
        text = json.dumps(pandas)
        text = mutate_text(text, rng) if rng.random() < 0.3 else text
        table = table.replace_schema_metadata({"pandas": text})
    elif how == 1:
        odd: list[Any] = [
            pa.array([[1, 2]] * 12), pa.array([{"k": 1}] * 12), pa.array([b"\xff"] * 12),
            pa.array([None] * 12), pa.array([2**63] * 12, pa.uint64()), pa.array(["x"] * 12),
            pa.array([1e308] * 12), pa.array(range(12), pa.timestamp("s")), pa.array([True] * 12),
            pa.array(range(12), pa.time32("s")), pa.array(range(12), pa.duration("s")),
            pa.array(["a", "b"] * 6).dictionary_encode(), pa.array([float("nan")] * 12),
            pa.array(range(12), pa.decimal128(38, 0)),
        ]  # fmt: skip
        if rng.random() < 0.5:
            table = table.drop_columns([rng.choice(("a", "y"))])
        name = rng.choice(("a", "y", "", "new", "é"))
        table = table.append_column(name, rng.choice(odd))
    pq.write_table(table, path, compression=rng.choice(("none", "snappy", "gzip", "zstd")))
    if how >= 2:
        path.write_bytes(mutate(path.read_bytes(), rng))
    return path


# Images


def _picture(rng: random.Random, suffix: str) -> bytes:
    mode = rng.choice(("L", "RGB", "P", "1", "RGBA", "LA", "CMYK", "I;16", "F"))
    allowed = {
        ".png": ("L", "RGB", "P", "1", "RGBA", "LA", "I;16"),
        ".jpg": ("L", "RGB", "CMYK"),
        ".gif": ("L", "P", "RGB", "1"),
        ".bmp": ("L", "RGB", "P", "1"),
        ".webp": ("RGB", "RGBA", "L"),
        ".ppm": ("L", "RGB", "1"),
    }.get(suffix, ("L", "RGB", "RGBA", "CMYK", "F", "I;16", "1", "P"))
    mode = mode if mode in allowed else rng.choice(allowed)
    grey = Image.fromarray(X[rng.randrange(12)].repeat(3, 0).repeat(3, 1))
    image = Image.fromarray(np.asarray(grey).astype(np.uint16)) if mode == "I;16" else grey
    raw = io.BytesIO()
    kind = {".jpg": "JPEG", ".tif": "TIFF"}.get(suffix, suffix[1:].upper())
    options: dict[str, Any] = {}
    if suffix == ".tif":
        options["compression"] = rng.choice((None, "tiff_lzw", "tiff_deflate", "packbits"))
    image = image if mode == "I;16" else image.convert(mode)
    image.save(raw, kind, **options)
    return raw.getvalue()


def images(rng: random.Random, directory: Path) -> Path:
    """Write two classes of images, of which some are changed or are not files."""
    folder = directory / "photos"
    for k in range(6):
        suffix = rng.choice((".png", ".jpg", ".gif", ".bmp", ".webp", ".tif", ".ppm"))
        data = _picture(rng, suffix)
        path = folder / ("cat", "dog")[k % 2] / f"{k}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if k == 0 or rng.random() < 0.2:
            data = mutate(data, rng)
        path.write_bytes(data)
    for _ in range(rng.choice((0, 0, 1, 2))):
        inside = folder / rng.choice(("cat", "dog", ".", "train", "val", "labels", "images"))
        inside.mkdir(exist_ok=True)
        name = rng.choice(("a\nb.png", "x" * 200 + ".png", "é😀.jpg", "deep", "loop.png", "n.heic"))
        target = inside / name
        if target.exists() or target.is_symlink():
            continue
        how = rng.randrange(4)
        if how == 0:
            target.mkdir()
        elif how == 1:
            target.symlink_to(rng.choice((inside, target, folder, Path("/nowhere"))))
        elif how == 2:
            os.mkfifo(target)
        else:
            target.write_bytes(_picture(rng, ".png"))
    if rng.random() < 0.1:  # one image, which is no data set
        return next((folder / "cat").iterdir())
    return folder


def archive(rng: random.Random, directory: Path) -> Path:
    """Write a zip or tar archive of images, with odd names, links or bytes."""
    suffix = rng.choice((".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"))
    path = directory / f"photos{suffix}"
    members = {f"p/{('cat', 'dog')[k % 2]}/{k}.png": _picture(rng, ".png") for k in range(6)}
    if rng.random() < 0.5:
        name = rng.choice(
            ("../../evil.png", "/tmp/evil.png", "p/cat/../../../evil.png", "p/cat/a\0b.png",
             "p/cat/" + "d/" * 300 + "x.png", "", "p/cat", "C:\\evil.png", "p/cat/é.png",
             "p/cat/\n.png", "~/x.png", "p/cat/0.png", "__MACOSX/cat/0.png", "p//cat//9.png"),
        )  # fmt: skip
        members[name] = _picture(rng, ".png")
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w", rng.choice((0, 8, 12, 14))) as made:
            for name, data in members.items():
                made.writestr(name or "empty", data)
    else:
        packing = {".tgz": "gz", ".tar": ""}.get(suffix, suffix.removeprefix(".tar."))
        mode: Any = f"w:{packing}"
        with tarfile.open(path, mode) as made:
            for name, data in members.items():
                about = tarfile.TarInfo(name or "empty")
                about.size = len(data)
                if rng.random() < 0.1:
                    about.type = rng.choice(
                        (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)
                    )
                    about.linkname = rng.choice(("/etc/passwd", "../../x", name))
                made.addfile(about, io.BytesIO(data))
    if rng.random() < 0.5:
        path.write_bytes(mutate(path.read_bytes(), rng))
    return path


def npy(rng: random.Random, directory: Path) -> Path:
    """Write a pair of .npy files, one of them with an odd header or changed bytes."""
    which = rng.choice(("x", "y"))
    for name, values in (("x", X), ("y", Y.astype(np.uint8))):
        path = directory / f"{name}_train.npy"
        np.save(path, values)
        if name == which and rng.random() < 0.6:
            path.write_bytes(_header(rng, values.shape) + values.tobytes())
        elif name == which:
            path.write_bytes(mutate(path.read_bytes(), rng))
    return rng.choice((directory, directory / "x_train.npy"))


def file_list(rng: random.Random, directory: Path) -> Path:
    """Write a table of images' names and labels, some of them odd, beside the images."""
    rows = []
    (directory / "photos").mkdir()
    for k in range(6):
        data = _picture(rng, ".png")
        (directory / "photos" / f"{k}.png").write_bytes(data if rng.random() < 0.9 else data[:40])
        name = (
            f"{k}.png" if rng.random() < 0.9 else rng.choice(("../x.png", "/dev/zero.png", "é.png"))
        )
        rows.append(f"{name},{rng.choice(WORDS) if rng.random() < 0.1 else 'ab'[k % 2]}")
    path = directory / "t.csv"
    data = "\n".join(["file,y", *rows]).encode("utf-8", "surrogatepass")
    path.write_bytes(mutate(data, rng) if rng.random() < 0.3 else data)
    return path


def ts(rng: random.Random, directory: Path) -> Path:
    """Write a .ts file of series with odd headers, channels, lengths, values and bytes."""
    label = rng.choice(("@classLabel true 0 1 2", "@classLabel true", "@targetLabel true"))
    head = ["@problemName t", "@timeStamps false", label, "@data"]
    if rng.random() < 0.3:
        head[rng.randrange(4)] = rng.choice(
            ("@timeStamps true", "@missing true", "", "@DATA ", "@")
        )
    odd = rng.choice((0.0, 0.0, 0.05, 0.2))
    rows = []
    for k in range(9):
        length = 5 if rng.random() < 0.8 else rng.choice((1, 4, 9))
        cells = [f"{rng.gauss(0, 1):.2f}" for _ in range(length)]
        if rng.random() < 0.2:
            cells[rng.randrange(length)] = rng.choice(("?", "NaN", *(WORDS if odd else ())))
        channels = [",".join(cells)] * (rng.choice((0, 1, 3)) if rng.random() < odd else 2)
        rows.append(":".join([*channels, "" if rng.random() < odd else str(k % 3)]))
    data = "\n".join([*head, *rows]).encode("utf-8", "surrogatepass")
    path = directory / rng.choice(("t_TRAIN.ts", "t.ts", "t_TEST.ts"))
    path.write_bytes(mutate(data, rng) if rng.random() < 0.4 else data)
    return rng.choice((path, path, directory))


def ucr_text(rng: random.Random, directory: Path) -> Path:
    """Write a .tsv file of series, the class first, with odd cells and bytes."""
    rows = []
    odd = rng.choice((0.0, 0.05, 0.2))
    for k in range(9):
        cells = [str(k % 3), *(f"{rng.gauss(0, 1):.2f}" for _ in range(5))]
        if rng.random() < 0.2:
            cells[rng.randrange(1, 6)] = rng.choice(("NaN", ""))
        if rng.random() < odd:
            cells[rng.randrange(6)] = rng.choice(WORDS)
        rows.append("\t".join(cells[: rng.randrange(6)] if rng.random() < odd else cells))
    data = "\n".join(rows).encode("utf-8", "surrogatepass")
    path = directory / "t_TRAIN.tsv"
    path.write_bytes(mutate(data, rng) if rng.random() < 0.3 else data)
    return path


MAKERS: tuple[tuple[str, Callable[[random.Random, Path], Path]], ...] = (
    ("npz", npz),
    ("idx", idx),
    ("cifar", cifar),
    ("text table", text_table),
    ("parquet", parquet),
    ("images", images),
    ("sounds", sounds),
    ("archive", archive),
    ("npy", npy),
    ("file list", file_list),
    ("ts", ts),
    ("ucr text", ucr_text),
)


def case(rng: random.Random, directory: Path) -> tuple[str, Callable[[], object]]:
    """Make one file or directory, to be read with options that may not fit."""
    kind, make = rng.choice(MAKERS)
    path: Path | str = make(rng, directory)
    if rng.random() < 0.01:
        path = rng.choice(("~nobody/x", "\0", "a" * 5000, "", "/dev/null", "//", str(path) + "/x"))
    options: dict[str, Any] = {}
    if kind in ("text table", "parquet", "file list") or rng.random() < 0.02:
        options["label"] = rng.choice(("y", "y", "y", "c", "a", "z", ""))
    if rng.random() < 0.2:
        options["max_examples"] = rng.choice((4, 6, 8, 1))
    if kind in ("images", "archive", "file list"):
        options["skip_bad"] = rng.random() < 0.5
        if rng.random() < 0.3:
            options["size"] = rng.choice((1, 4, 8, (3, 5)))
    if kind == "sounds":
        options["skip_bad"] = rng.random() < 0.7
        options["group"] = rng.choice((None, None, "/(.)_", "(", "z"))
    if rng.random() < 0.1:
        options["task"] = rng.choice(("classification", "regression"))
    if rng.random() < 0.1:
        options["kind"] = rng.choice(("image", "series", "vector"))

    def call() -> None:
        data = load(path, **options)
        assert data.preparation is not None
        again = Preparation.from_dict(json.loads(json.dumps(data.preparation.to_dict())))
        assert again == data.preparation
        given = {k: v for k, v in options.items() if k in ("label", "size", "skip_bad", "kind")}
        load_new(path, again, shape=data.shape, real=data.classes is None, **given)

    return kind, call
