"""Recordings with labels, as clips of one length at one sample rate."""

from __future__ import annotations

import numpy as np

from augury._base.text import flat
from augury.data.clips import (
    MOST_CLIPS,
    clip_length,
    clip_starts,
    common_rate,
    describe_clips,
    fit_length,
    resample,
)
from augury.data.limits import check_bytes
from augury.data.readers.listing import Listing, Reading
from augury.data.readers.recordings import Recording, open_recording
from augury.data.source import Request, Source


def read_sounds(listing: Listing, request: Request) -> Source:
    """Read recordings with labels, or without where they are new.

    Those to keep are chosen first; their headers are looked at; then their clips are read, two
    recordings at a time: of a long one, only the stretches that are used. Clips of one recording
    form a group where no other is named.
    """
    reading = Reading(listing, request)
    opened, notes = reading.open(open_recording), reading.notes
    rate, length, most = _plan(opened, request, notes)
    clips, numbers = _read(reading, opened, rate, length, most)
    notes += reading.bad.notes()
    whole = [opened[n].seconds for n in dict.fromkeys(numbers.tolist())]
    fixed = request.seconds is not None or request.like is not None
    notes += describe_clips(whole, length, len(numbers), fixed)
    if any(recording.channels > 1 for recording in opened.values()):
        stereo = sum(recording.channels > 1 for recording in opened.values())
        notes.append(f"channels were averaged to one ({stereo:,} of {len(opened):,} recordings)")
    groups = reading.take_groups(numbers)
    if groups is None and len(numbers) > len(whole) and not request.new:
        groups = numbers
    return Source(
        clips,
        reading.take_labels(numbers),
        listing.classes,
        "sound",
        notes=tuple(notes),
        total=max(len(listing.files) - len(reading.bad.names), len(numbers)),
        groups=groups,
        rate=rate,
        files=reading.take_names(numbers),
    )


def _plan(
    opened: dict[int, Recording], request: Request, notes: list[str]
) -> tuple[int, float, int]:
    """Return the sample rate, the length of clips in seconds, and how many a recording gives."""
    asked, seconds = request.rate, request.seconds
    if request.like is not None and request.like.rate is not None:
        asked = request.like.rate
        seconds = request.like.shape[-1] / asked
    rate, said = common_rate([recording.rate for recording in opened.values()], asked)
    notes += said
    length = clip_length([recording.seconds for recording in opened.values()], seconds)
    most = 1 if request.new else MOST_CLIPS
    if request.max_examples is not None:
        most = min(most, max(1, request.max_examples // len(opened)))
    return rate, length, most


def _read(
    reading: Reading, opened: dict[int, Recording], rate: int, length: float, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return clips ``(N, 1, samples)``, and the number of the file that each is from."""
    samples = max(1, round(length * rate))
    starts = {n: clip_starts(r.seconds, length, most) for n, r in opened.items()}
    check_bytes(
        4 * samples * sum(map(len, starts.values())),
        f"the recordings of {flat(reading.listing.shown)}",
        "give a lower --rate or shorter clips with --seconds",
    )

    def one(number: int) -> list[np.ndarray]:
        recording = opened[number]
        return [_clip(recording, start, length, rate, samples) for start in starts[number]]

    clips: list[np.ndarray] = []
    numbers: list[int] = []
    for number, found in reading.read(list(opened), one):
        clips += found
        numbers += [number] * len(found)
    return np.stack(clips)[:, None], np.array(numbers)


def _clip(recording: Recording, start: float, length: float, rate: int, samples: int) -> np.ndarray:
    first = round(start * recording.rate)
    count = min(recording.frames - first, round(length * recording.rate))
    return fit_length(resample(recording.read(first, max(1, count)), recording.rate, rate), samples)
