"""Which examples to keep when there are too many: seeded, each class in proportion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import are, count
from augury.data.labels import Labels, encode
from augury.data.source import Request


def select(
    y: Any, n: int, classes: Sequence[object] | None, request: Request
) -> tuple[Labels, np.ndarray | None, list[str]]:
    """Encode the labels of all examples and choose which examples to keep.

    The one place where labels are encoded: a reader that opens only what is kept calls it, and
    `augury.data.load.prepare` does for the others.

    Parameters
    ----------
    y, n, classes
        As for `augury.data.labels.encode`.
    request
        Its task, its most examples and its seed.

    Returns
    -------
    labels
        Of the examples that are kept.
    kept
        Their numbers; None where all are kept.
    notes
        What was left out.
    """
    labels = encode(y, n, classes, request.task)
    kept = choose(labels.y, labels.count, request.max_examples, request.seed)
    if kept is None:
        return labels, None, []
    note = sample_note(len(kept), n, request.seed, by_class=labels.classes is not None)
    return labels.take(kept), kept, [note]


def choose(y: np.ndarray, classes: int | None, most: int | None, seed: int) -> np.ndarray | None:
    """Choose at most `most` examples, in their order; None where all are kept.

    Parameters
    ----------
    y
        ``(N,)`` class numbers, or real targets.
    classes
        The number of classes; None for a real target, where the choice is uniform.
    most
        How many to keep; None for all.
    seed
        The same seed keeps the same examples.
    """
    if most is None or most >= len(y):
        return None
    least = 2 * (classes or 1)
    if most < least:
        needed = "two" if classes is None else f"two of each of {classes} classes"
        few = f"{count(most, 'example')} {are(most)} too few"
        raise AuguryError(f"{few} for {needed}; allow at least {least}")
    rng = np.random.default_rng(seed & 0x7FFF_FFFF_FFFF_FFFF)  # any integer, negative ones too
    if classes is None:
        return np.sort(rng.choice(len(y), most, replace=False))
    kept = [
        rng.choice(np.flatnonzero(y == c), share, replace=False)
        for c, share in enumerate(shares(np.bincount(y, minlength=classes), most))
    ]
    return np.sort(np.concatenate(kept))


def shares(counts: np.ndarray, most: int) -> np.ndarray:
    """Share `most` places among classes by size, by largest remainder, at least two to each.

    A class of fewer than two examples gets what it has. Where no class had to be rounded up to
    two, every share is within one of its exact proportion.
    """
    exact = counts * (most / counts.sum())
    share = np.maximum(np.minimum(counts, 2), np.floor(exact).astype(int))
    while share.sum() > most:  # small classes were rounded up: take from the largest
        share[np.argmax(share)] -= 1
    for c in np.argsort(share - exact, kind="stable"):
        if share.sum() < most and share[c] < counts[c]:
            share[c] += 1
    return share


def sample_note(kept: int, total: int, seed: int, by_class: bool) -> str:
    """Describe the sample in one sentence."""
    note = f"{kept:,} of {total:,} examples were used, sampled with seed {seed}"
    return note + ", proportionally by class" if by_class else note
