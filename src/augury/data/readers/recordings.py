"""One recording: its header is read first, then stretches of it, never the whole of a long one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import cause
from augury.data.readers.bad import Unreadable
from augury.data.readers.wav import Wav, parse_wav

SOUNDS = (".wav", ".wave", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff")
"""The names of recordings end in these; all but plain WAV files need soundfile."""

_RATES = (1_000, 768_000)
_MOST_CHANNELS = 256


@dataclass(frozen=True)
class Recording:
    """What is known of a recording before its samples are read."""

    path: Path
    rate: int
    channels: int
    frames: int
    wav: Wav | None
    """How to read it without soundfile."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.frames / self.rate

    def read(self, start: int, count: int) -> np.ndarray:
        """Return samples from `start` on as one channel, the mean of all, in [-1, 1]."""
        try:
            if self.wav is not None:
                values = self.wav.read(self.path, start, count)
            else:
                with _soundfile(self.path).SoundFile(self.path) as file:
                    file.seek(start)
                    values = file.read(count, dtype="float32", always_2d=True)
        except (AuguryError, Unreadable):
            raise
        except Exception as error:  # a damaged recording may make its decoder raise anything
            raise Unreadable(_reason(error)) from error
        if not len(values):
            raise Unreadable("it is cut short: samples are missing")
        mono = values.mean(axis=1)
        if not np.isfinite(mono).all():
            raise Unreadable("it has samples that are NaN or infinite")
        return mono


def open_recording(path: Path) -> Recording:
    """Inspect a recording without decoding it."""
    try:
        found = _open(path)
    except (AuguryError, Unreadable):
        raise
    except OSError as error:
        raise Unreadable(cause(error)) from error
    except Exception as error:  # a damaged header may make its reader raise anything
        raise Unreadable(_reason(error)) from error
    if found.frames <= 0:
        raise Unreadable("it is empty: it has no samples")
    if not _RATES[0] <= found.rate <= _RATES[1]:
        raise Unreadable(f"its sample rate is {found.rate:,} Hz")
    if not 1 <= found.channels <= _MOST_CHANNELS:
        raise Unreadable(f"it has {found.channels:,} channels")
    return found


def _open(path: Path) -> Recording:
    if path.suffix.lower() in (".wav", ".wave"):
        wav = parse_wav(path)
        if wav is not None:
            return Recording(path, wav.rate, wav.channels, wav.frames, wav)
    if path.stat().st_size == 0:
        raise Unreadable("the file is empty")
    with _soundfile(path).SoundFile(path) as file:
        return Recording(path, file.samplerate, file.channels, file.frames, None)


def _reason(error: Exception) -> str:
    """Return what went wrong; libsndfile's own words come without the path that we name."""
    return str(getattr(error, "error_string", "")).strip(" .") or cause(error)


def _soundfile(path: Path) -> Any:
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: libsndfile itself is missing
        raise AuguryError(
            f"reading {path.suffix.lower()} recordings such as {path.name} needs soundfile; "
            "pip install 'augury[sound]', or convert them to WAV with 16 bits"
        ) from None
    return soundfile
