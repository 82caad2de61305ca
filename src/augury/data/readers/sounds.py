"""Recordings with labels, as clips of one length at one sample rate."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
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
from augury.data.groups import match_groups
from augury.data.labels import Labels
from augury.data.limits import check_bytes
from augury.data.readers.bad import BadFiles, Unreadable, relative
from augury.data.readers.recordings import Recording, open_recording
from augury.data.sampling import select
from augury.data.source import Request, Source


def read_sounds(
    root: Path,
    files: Sequence[Path],
    y: np.ndarray | None,
    names: Sequence[str] | None,
    request: Request,
    notes: Sequence[str],
    shown: str,
    groups: np.ndarray | None = None,
) -> Source:
    """Read recordings with labels, or without where they are new.

    Those to keep are chosen first; their headers are looked at; then their clips are read, two
    recordings at a time: of a long one, only the stretches that are used. Clips of one recording
    form a group where no other is named.
    """
    notes, total = list(notes), len(files)
    classes = None if names is None else tuple(names)
    labels: Any = y
    if groups is None and request.group is not None:
        groups = match_groups(request.group, [relative(file, root) for file in files])
    if y is not None and not request.new:
        labels, kept, left_out = select(y, len(files), classes, request)
        notes += left_out
        if kept is not None:
            files = [files[i] for i in kept]
            groups = None if groups is None else groups[kept]
    bad = BadFiles(root, shown, request.skip_bad, "recording")
    opened: dict[int, Recording] = {}
    for number, file in enumerate(files):
        try:
            opened[number] = open_recording(file)
        except Unreadable as error:
            bad.add(file, error)
    if not opened:
        raise AuguryError(f"none of the {len(files):,} recordings in {flat(shown)} can be read")
    rate, length, most = _plan(opened, request, notes)
    clips, numbers = _read(opened, rate, length, most, request, bad, shown)
    notes += bad.notes()
    whole = [opened[n].seconds for n in dict.fromkeys(numbers.tolist())]
    fixed = request.seconds is not None or request.like is not None
    notes += describe_clips(whole, length, len(numbers), fixed)
    if any(recording.channels > 1 for recording in opened.values()):
        stereo = sum(recording.channels > 1 for recording in opened.values())
        notes.append(f"channels were averaged to one ({stereo:,} of {len(opened):,} recordings)")
    several = len(numbers) > len(whole)
    if groups is None and several and not request.new:
        groups = np.arange(len(files))
    if labels is not None:
        labels = labels.take(numbers) if isinstance(labels, Labels) else labels[numbers]
    return Source(
        clips,
        labels,
        classes,
        "sound",
        notes=tuple(notes),
        total=max(total, len(numbers)),
        groups=None if groups is None else groups[numbers],
        rate=rate,
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
    opened: dict[int, Recording],
    rate: int,
    length: float,
    most: int,
    request: Request,
    bad: BadFiles,
    shown: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return clips ``(N, 1, samples)``, and the number of the file that each is from."""
    samples = max(1, round(length * rate))
    starts = {n: clip_starts(r.seconds, length, most) for n, r in opened.items()}
    check_bytes(
        4 * samples * sum(map(len, starts.values())),
        f"the recordings of {flat(shown)}",
        "give a lower --rate or shorter clips with --seconds",
    )

    def one(number: int) -> list[np.ndarray] | Unreadable:
        recording = opened[number]
        try:
            return [_clip(recording, start, length, rate, samples) for start in starts[number]]
        except Unreadable as error:
            return error

    clips: list[np.ndarray] = []
    numbers: list[int] = []
    pool = ThreadPoolExecutor(2)
    try:
        for done, (number, found) in enumerate(zip(opened, pool.map(one, opened), strict=True), 1):
            if isinstance(found, Unreadable):
                bad.add(opened[number].path, found)
            else:
                clips += found
                numbers += [number] * len(found)
            if request.progress is not None:
                request.progress(done, len(opened))
    finally:  # also after Ctrl-C: what has not begun is not waited for
        pool.shutdown(cancel_futures=True)
    if not clips:
        raise AuguryError(f"none of the {len(opened):,} recordings in {flat(shown)} can be read")
    return np.stack(clips)[:, None], np.array(numbers)


def _clip(recording: Recording, start: float, length: float, rate: int, samples: int) -> np.ndarray:
    first = round(start * recording.rate)
    count = min(recording.frames - first, round(length * recording.rate))
    return fit_length(resample(recording.read(first, max(1, count)), recording.rate, rate), samples)
