"""Clips of one length from recordings of any: which rate, how long, and where they begin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import gcd

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import listed

HIGHEST_RATE = 16_000
"""Hz: speech and most sounds keep what tells them apart, at a third of the work of 44,100."""

LONGEST = 5.0
"""Seconds: longer recordings are cut into clips."""

MOST_CLIPS = 10
"""Clips of one recording, spread evenly over it: ten hours of one source teach little more."""

_COVERED = 0.95  # the share of recordings that fit whole into a clip


def common_rate(rates: Sequence[int], asked: int | None) -> tuple[int, list[str]]:
    """Return the sample rate that all recordings get, and say what was resampled."""
    counts = Counter(rates)
    rate = asked or min(counts.most_common(1)[0][0], HIGHEST_RATE)
    if set(counts) == {rate}:
        return rate, []
    found = [f"{r:,} Hz ({n:,})" for r, n in counts.most_common()]
    what = (
        "recordings"
        if len(counts) == 1
        else f"recordings of {len(counts):,} different sample rates"
    )
    hint = "" if asked else "; choose another rate with --rate (rate= in Python)"
    return rate, [f"{what}, {listed(found, 4)}, were resampled to {rate:,} Hz{hint}"]


def clip_length(seconds: Sequence[float], asked: float | None) -> float:
    """Return the length of clips: what 95 % of recordings fit into, at most `LONGEST`."""
    if asked is not None:
        return asked
    return float(min(LONGEST, np.quantile(np.asarray(seconds), _COVERED)))


def clip_starts(seconds: float, length: float, most: int = MOST_CLIPS) -> list[float]:
    """Return where the clips of a recording begin: as many as fit, one in its middle."""
    room = max(0.0, seconds - length)
    count = max(1, min(most, int(seconds / length + 1e-9)))
    if count == 1:
        return [room / 2]
    return [room * k / (count - 1) for k in range(count)]


def describe_clips(seconds: Sequence[float], length: float, clips: int, asked: bool) -> list[str]:
    """Describe what was cut and padded."""
    own = np.asarray(seconds)
    longer, shorter = int((own > length * 1.001).sum()), int((own < length * 0.999).sum())
    if not longer and not shorter:
        return []
    first, last = (_seconds(float(value)) for value in (own.min(), own.max()))
    span = f"of {first} s" if first == last else f"of {first} to {last} s"
    done = [f"{longer:,} of {len(own):,} were cut"] if longer else []
    done += [f"{shorter:,} of {len(own):,} were padded with silence"] if shorter else []
    note = f"recordings {span} became clips of {length:.3g} s: {' and '.join(done)}"
    if clips > len(own):
        note += f"; {clips:,} clips of {len(own):,} recordings, at most {MOST_CLIPS} of each"
    return [note if asked else note + "; choose another length with --seconds (seconds= in Python)"]


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def resample(samples: np.ndarray, old: int, new: int) -> np.ndarray:
    """Return samples at another rate, by a polyphase filter against aliasing."""
    if old == new:
        return samples
    from scipy.signal import resample_poly  # half a second to import

    shared = gcd(old, new)
    return resample_poly(samples, new // shared, old // shared, axis=-1).astype(np.float32)


def fit_length(samples: np.ndarray, length: int) -> np.ndarray:
    """Return so many samples: the middle of more, or silence around fewer."""
    spare = length - len(samples)
    if spare <= 0:
        start = -spare // 2
        return samples[start : start + length]
    return np.pad(samples, (spare // 2, spare - spare // 2))


def check_clip(rate: int | None, seconds: float | None) -> None:
    """Raise if a requested rate or length is out of range."""
    if rate is not None and not 1_000 <= rate <= 192_000:
        raise AuguryError(f"a sample rate must be from 1,000 to 192,000 Hz, not {rate:,}")
    if seconds is not None and not 0.01 <= seconds <= 60:
        raise AuguryError(f"clips must be 0.01 to 60 seconds long, not {seconds:g}")
