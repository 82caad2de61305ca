"""Recordings without labels, to be mixed in as noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat
from augury.data.clips import resample
from augury.data.readers.bad import BadFiles, Unreadable
from augury.data.readers.recordings import SOUNDS, open_recording
from augury.data.source import reading

_EACH, _ALL = 60.0, 600.0  # seconds of a recording, and of all of them


def load_noise(path: str | Path, rate: int, *, skip_bad: bool = False) -> np.ndarray:
    """Read a recording, or all below a directory, joined end to end at one level.

    Of each recording at most a minute is read, and ten minutes of all; silent ones are left out.

    Parameters
    ----------
    path
        A recording or a directory.
    rate
        Samples a second of the result: that of the data.
    skip_bad
        Whether recordings that cannot be read are left out.

    Returns
    -------
    wave
        ``(samples,)``, each recording with a mean square of 1.
    """
    root = Path(path).expanduser()
    if not root.exists():
        raise AuguryError(f"there is no file or directory {flat(path)} with recordings of noise")
    found = sorted(root.rglob("*")) if root.is_dir() else [root]
    files = [file for file in found if file.suffix.lower() in SOUNDS and file.is_file()]
    bad = BadFiles(root, str(path), skip_bad, "recording")
    parts: list[np.ndarray] = []
    room = round(_ALL * rate)
    with reading(path):
        for file in files:
            if room <= 0:
                break
            try:
                recording = open_recording(file)
                count = min(recording.frames, round(_EACH * recording.rate))
                wave = resample(recording.read(0, count), recording.rate, rate)[:room]
            except Unreadable as error:
                bad.add(file, error)
                continue
            level = float(np.sqrt(np.mean(np.square(wave, dtype=np.float64))))
            if level > 0:
                parts.append((wave / level).astype(np.float32))
                room -= len(wave)
    if not parts:
        kinds = " ".join(SOUNDS)
        raise AuguryError(f"{flat(path)} holds no recording that can be heard ({kinds})")
    return np.concatenate(parts)
