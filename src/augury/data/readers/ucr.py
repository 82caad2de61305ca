"""Series of the UCR and UEA archives: ``.ts`` files, and ``.tsv`` files with the class first."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat, is_number
from augury.data.gaps import stack_series
from augury.data.limits import check_bytes
from augury.data.source import Request, Source

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def read_ts(path: Path, request: Request) -> Source:
    """Read a ``.ts`` file: a header of ``@`` lines, then one series per line, its label last."""
    header = _Header()
    series: list[np.ndarray] = []
    labels: list[str] = []
    places: list[str] = []
    for number, line in enumerate(map(str.strip, _lines(path)), start=1):
        if not line or line[0] in "#%":
            continue
        where = f"line {number} of {flat(path)}"
        if line[0] == "@":
            header.add(line, where)
            continue
        if not header.data:
            raise AuguryError(f"{where}: expected a header that ends in @data; is it a .ts file?")
        *channels, last = line.split(":")
        if not header.labelled:
            channels, last = [*channels, last], ""
        if not channels:
            raise AuguryError(f"{where}: expected channels and a label with ':' between them")
        values = [_numbers(channel, where) for channel in channels]
        if len({len(v) for v in values}) > 1:
            raise AuguryError(
                f"{where}: the channels of one series have {min(map(len, values)):,} to "
                f"{max(map(len, values)):,} values; give one length"
            )
        series.append(np.stack(values))
        labels.append(last.strip())
        places.append(where)
    return _source(path, series, labels if header.labelled else [], places, header, request)


def is_ucr_text(path: Path) -> bool:
    """Return whether a ``.tsv`` file has no line of names: a class and values, numbers all."""
    with open(path, encoding="utf-8", errors="replace") as file:
        first = file.readline(1 << 20).rstrip("\r\n").split("\t")
    if len(first) < 3:
        return False
    try:
        [float(cell) for cell in first if cell]
    except ValueError:
        return False
    return True


def read_ucr_text(path: Path, request: Request) -> Source:
    """Read a ``.tsv`` file of the UCR archive: the class, then the values; NaN at the end pads."""
    series, labels, places = [], [], []
    for number, line in enumerate(_lines(path), start=1):
        if not line:
            continue
        label, _, rest = line.partition("\t")
        where = f"line {number} of {flat(path)}"
        values = _numbers(rest, where, "\t")
        present = np.flatnonzero(~np.isnan(values))
        series.append(values[None, : present[-1] + 1 if len(present) else len(values)])
        labels.append(label.strip())
        places.append(where)
    return _source(path, series, labels, places, _Header(), request)


def find_series(folder: Path, *, new: bool = False) -> Path | None:
    """Return the archive's training file of a directory (``*_TRAIN.ts``), or its test file."""
    part = "_TEST" if new else "_TRAIN"
    found = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in (".ts", ".tsv")]
    own = [p for p in found if p.stem.upper().endswith(part)]
    own.sort(key=lambda p: (p.stem.upper() != folder.name.upper() + part, p.suffix != ".ts"))
    return own[0] if own else None


@dataclass
class _Header:
    """What the ``@`` lines of a ``.ts`` file say that is of use here."""

    data: bool = False
    labelled: bool = False
    real: bool = False
    classes: tuple[str, ...] = ()

    def add(self, line: str, where: str) -> None:
        key, _, rest = line[1:].partition(" ")
        key, words = key.strip().lower(), rest.split()
        stated = bool(words) and words[0].lower() == "true"
        if key == "data":
            self.data = True
        elif key == "timestamps" and stated:
            raise AuguryError(
                f"{where}: time stamps in a .ts file are not read; save values at equal steps"
            )
        elif key == "classlabel" and stated:
            self.labelled, self.classes = True, tuple(words[1:])
        elif key == "targetlabel" and stated:
            self.labelled = self.real = True


def _lines(path: Path) -> list[str]:
    check_bytes(path.stat().st_size, path, "save fewer series")
    return [line.rstrip() for line in path.read_text("utf-8-sig", errors="replace").split("\n")]


def _numbers(text: str, where: str, separator: str = ",") -> np.ndarray:
    cells = ["nan" if cell.strip() in ("?", "") else cell for cell in text.split(separator)]
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        wrong = next(cell for cell in cells if not is_number(cell))
        raise AuguryError(f"{where}: expected numbers, got {flat(wrong)[:40]!r}") from None


def _source(
    path: Path,
    series: list[np.ndarray],
    labels: list[str],
    places: list[str],
    header: _Header,
    request: Request,
) -> Source:
    if not series:
        raise AuguryError(f"{flat(path)} holds no series; expected one per line")
    if not any(labels) and not request.new:
        expected = (
            "a label at the end of each line, and @classLabel true or @targetLabel true in its "
            "header"
            if path.suffix.lower() == ".ts"
            else "a label at the start of each line"
        )
        raise AuguryError(f"{flat(path)} has no labels: expected {expected}")
    if not all(labels) and not request.new:
        where = places[labels.index("")]
        raise AuguryError(f"{where} has no label; give one to each series, or drop this line")
    like = request.like
    x, notes = stack_series(series, None if like is None or len(like.shape) != 2 else like.shape[1])
    found = Source(x, kind="series", notes=tuple(notes))
    if not any(labels):
        return found
    if not all(labels):
        return replace(found, y=np.array([label or None for label in labels], dtype=object))
    if header.real or request.task == "regression":
        wrong = [label for label in labels if not is_number(label)]
        if wrong:
            raise AuguryError(
                f"{flat(path)}: expected a number to predict, got {flat(wrong[0])[:40]!r}"
            )
        return replace(found, y=np.array(labels, dtype=np.float64), task="regression")
    names = header.classes if set(labels) <= set(header.classes) else None
    if names is not None and not request.new:
        return replace(found, y=np.array(labels), classes=names)
    return replace(found, y=_plain(labels))


def _plain(labels: list[str]) -> np.ndarray:
    """Return labels as numbers where each is written as whole numbers are, else as words.

    Codes, such as 01, are words: as a number, 01 would be the class 1.
    """
    if all(_WHOLE.fullmatch(label) for label in labels):
        return np.array(labels, dtype=np.int64)
    return np.array(labels)
