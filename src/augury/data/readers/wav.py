"""WAV files, read without other libraries: the header first, then any stretch of samples."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from augury.data.readers.bad import Unreadable

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)  # written by programs that did not know how much would follow
_MOST_CHUNKS = 1000
_DTYPES = {
    (_PCM, 8): "<u1", (_PCM, 16): "<i2", (_PCM, 24): "<u1", (_PCM, 32): "<i4",
    (_FLOAT, 32): "<f4", (_FLOAT, 64): "<f8",
}  # fmt: skip


@dataclass(frozen=True)
class Wav:
    """Where the samples of a WAV file lie, and what they are."""

    rate: int
    channels: int
    frames: int
    encoding: tuple[int, int]
    """The format's code, and its bits per sample."""
    offset: int

    def read(self, path: Path, start: int, count: int) -> np.ndarray:
        """Return `count` frames from `start` on, ``(count, channels)``, in [-1, 1]."""
        code, bits = self.encoding
        width = self.channels * bits // 8
        with open(path, "rb") as file:
            file.seek(self.offset + start * width)
            raw = np.frombuffer(file.read(count * width), dtype=_DTYPES[self.encoding])
        if bits == 24:  # three bytes as the upper three of four
            whole = np.zeros((len(raw) // 3, 4), dtype=np.uint8)
            whole[:, 1:] = raw[: len(raw) // 3 * 3].reshape(-1, 3)
            raw, bits = whole.view("<i4")[:, 0], 32
        values = raw.astype(np.float32)
        if code == _PCM:
            values = (values - 128) / 128 if bits == 8 else values / 2.0 ** (bits - 1)
        return values[: len(values) // self.channels * self.channels].reshape(-1, self.channels)


def parse_wav(path: Path) -> Wav | None:
    """Read the header of a WAV file; None if its samples are packed in a way not read here."""
    with open(path, "rb") as file:
        start = file.read(12)
        if not start:
            raise Unreadable("the file is empty")
        if start[:4] not in (b"RIFF", b"RF64") or start[8:12] != b"WAVE":
            raise Unreadable("it is not a WAV file")
        form: tuple[int, ...] | None = None
        for _ in range(_MOST_CHUNKS):
            head = file.read(8)
            if len(head) < 8:
                raise Unreadable("it is cut short: it has no samples")
            name, size = struct.unpack("<4sI", head)
            if name == b"fmt ":
                form = _format(file, size)
            elif name == b"data":
                if form is None:
                    raise Unreadable("its header does not say what its samples are")
                return _samples(file, size, form)
            else:
                file.seek(size + size % 2, 1)  # chunks begin at even places
    raise Unreadable("its header has no end")


def _format(file: IO[bytes], size: int) -> tuple[int, ...]:
    """Return the encoding, channels, rate and bits per sample."""
    text = file.read(min(size, 64))
    if len(text) < 16:
        raise Unreadable("its header is cut short")
    file.seek(size + size % 2 - len(text), 1)
    code, channels, rate, _, _, bits = struct.unpack("<HHIIHH", text[:16])
    if code == _EXTENSIBLE and len(text) >= 26:
        (code,) = struct.unpack("<H", text[24:26])
    return code, channels, rate, bits


def _samples(file: IO[bytes], size: int, form: tuple[int, ...]) -> Wav | None:
    code, channels, rate, bits = form
    if (code, bits) not in _DTYPES:
        return None
    if channels == 0:
        raise Unreadable("its header says 0 channels")
    offset = file.tell()
    there = file.seek(0, 2) - offset
    if size in _UNKNOWN_SIZES:
        size = there
    width = channels * bits // 8
    if size > there:
        raise Unreadable(f"it is cut short: {there // width:,} of {size // width:,} samples")
    return Wav(rate, channels, size // width, (code, bits), offset)
