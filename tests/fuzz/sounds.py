"""Mutated recordings: WAV, FLAC, OGG and MP3 files with odd headers and bytes."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path

import numpy as np
import soundfile

from .bytes import NUMBERS, mutate

_FORMATS = {
    ".wav": (("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("WAV", "ULAW"),
             ("WAV", "PCM_U8"), ("WAVEX", "PCM_16")),
    ".flac": (("FLAC", "PCM_16"),),
    ".ogg": (("OGG", "VORBIS"),),
    ".mp3": (("MP3", "MPEG_LAYER_III"),),
}  # fmt: skip


def _recording(rng: random.Random, suffix: str) -> bytes:
    rate, channels = rng.choice((8000, 8000, 16000, 44100)), rng.choice((1, 1, 2))
    count = rng.choice((0, 1, 50, 2000, 2000, 2000))
    noise = np.random.default_rng(rng.randrange(99)).normal(size=(count, channels)) / 5
    kind, subtype = rng.choice(_FORMATS[suffix])
    raw = io.BytesIO()
    soundfile.write(raw, noise.clip(-1, 1), rate, format=kind, subtype=subtype)
    return raw.getvalue()


def _odd_header(data: bytes, rng: random.Random) -> bytes:
    """Write an odd number into one of the fields at the start of a WAV file."""
    at, width = rng.choice(((4, 4), (16, 4), (20, 2), (22, 2), (24, 4), (32, 2), (34, 2), (40, 4)))
    number = rng.choice(NUMBERS) % (1 << 8 * width)
    return data[:at] + struct.pack("<H" if width == 2 else "<I", number) + data[at + width :]


def sounds(rng: random.Random, directory: Path) -> Path:
    """Write two classes of recordings, of which some are changed."""
    folder = directory / "recordings"
    for k in range(6):
        suffix = rng.choice((".wav", ".wav", ".flac", ".ogg", ".mp3"))
        data = _recording(rng, suffix)
        path = folder / ("no", "yes")[k % 2] / f"{'ab'[k % 4 // 2]}_{k}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if suffix == ".wav" and len(data) > 44 and rng.random() < 0.2:
            data = _odd_header(data, rng)
        elif k == 0 or rng.random() < 0.15:
            data = mutate(data, rng)
        path.write_bytes(data)
    if rng.random() < 0.1:
        wrong = folder / "no" / f"x{rng.choice((*_FORMATS, '.opus', '.aiff'))}"
        wrong.write_bytes(_recording(rng, rng.choice((*_FORMATS,))))
    return folder
