"""Values on a common scale: pixels in [0, 1], other features with mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import are, count

_BLOCK = 1 << 22  # values looked at in one go, so that temporaries stay small
_LARGEST = 1e307  # differences of larger numbers may overflow


def span(x: np.ndarray, index: np.ndarray | None = None) -> tuple[float, float]:
    """Return the least and the largest value; raise if any is not finite.

    Parameters
    ----------
    x
        The examples.
    index
        Their numbers in the user's data, for the message, where `x` holds some of them only.
    """
    with np.errstate(invalid="ignore"):
        low, high = float(x.min()), float(x.max())
    if math.isfinite(low) and math.isfinite(high):
        return low, high
    rows = max(1, _BLOCK // max(1, x[0].size))
    counts = [
        (~np.isfinite(x[start : start + rows])).sum(axis=tuple(range(1, x.ndim)))
        for start in range(0, len(x), rows)
    ]
    refuse_bad(np.concatenate(counts), index)
    return low, high


def refuse_bad(bad: np.ndarray, index: np.ndarray | None = None) -> None:
    """Raise if any example has values that are not finite.

    Parameters
    ----------
    bad
        How many each has.
    index
        As for `span`.
    """
    if not bad.any():
        return
    first = int(np.argmax(bad > 0))
    if index is not None:
        first = int(index[first])
    total, rows = int(bad.sum()), int(np.count_nonzero(bad))
    raise AuguryError(
        f"{count(total, 'value')} in {count(rows, 'example')} {are(total)} NaN or infinite, the "
        f"first of them in example {first}; drop or repair those examples"
    )


def check_span(low: float, high: float) -> None:
    """Raise if float32, in which pixels are scaled, cannot hold how far apart these are."""
    apart = high - min(low, 0.0)
    if 0 < apart < float(np.finfo(np.float32).tiny):
        raise AuguryError(
            f"the pixels differ by {apart:.0e} at most, which is too little to compute with; "
            "rescale them to values near 1"
        )
    if apart > float(np.finfo(np.float32).max):
        raise AuguryError(
            f"the pixels hold numbers up to {max(-low, high):.0e}, which are too large to compute "
            "with; rescale them to values near 1"
        )


def scale_pixels(x: np.ndarray, how: str, ends: tuple[float, float] | None) -> np.ndarray:
    """Return images as bytes, or as float32 in [0, 1].

    Parameters
    ----------
    x
        The images.
    how
        One of `augury.data.preparation.PIXELS`.
    ends
        The values that become 0 and 1, where they are scaled by a span; others are clipped.
    """
    if ends is not None:
        base, top = ends
        out = np.empty(x.shape, dtype=np.float32)
        np.subtract(x, base, out=out, dtype=np.float64, casting="unsafe")  # in double, but no copy
        out /= top - base
        return np.clip(out, 0, 1, out=out)
    if x.dtype == np.bool_ or (x.dtype == np.uint8 and how != "bytes" and x.max() <= 1):
        return x.astype(np.uint8) * 255  # black and white
    return x if x.dtype == np.uint8 else np.asarray(x, dtype=np.float32)


def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of each column, or channel of series.

    A constant column has its own value as mean, and a deviation of exactly 0. Computed in float64,
    a block of columns at a time.
    """
    mean, deviation = np.empty(x.shape[1]), np.empty(x.shape[1])
    axes = (0, *range(2, x.ndim))
    for columns in _blocks(x):
        block = x[:, columns].astype(np.float64)
        low, high = block.min(axis=axes), block.max(axis=axes)
        peak = np.maximum(np.maximum(np.abs(low), np.abs(high)), np.finfo(float).tiny)
        if peak.max() > _LARGEST:
            column = columns.start + int(np.argmax(peak > _LARGEST))
            raise AuguryError(
                f"column {column + 1} holds numbers up to {peak.max():.0e}, which are too large to "
                "compute with; rescale them to values near 1"
            )
        block /= _along(peak, x.ndim)  # so that no square overflows
        middle = block.mean(axis=axes)
        block -= _along(middle, x.ndim)
        spread = np.sqrt(np.square(block).mean(axis=axes))
        mean[columns] = np.where(low == high, low, middle * peak)
        deviation[columns] = np.where(low == high, 0.0, spread * peak)
    return mean, deviation


def standardise(x: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return (x - mean) / deviation for each column or channel, as float32; constant ones as 0."""
    out = np.empty(x.shape, dtype=np.float32)
    divisor = np.where(deviation == 0, 1.0, deviation)
    with np.errstate(over="ignore", invalid="ignore"):  # new data may be far off: checked there
        for columns in _blocks(x):
            block = x[:, columns].astype(np.float64)
            block -= _along(mean[columns], x.ndim)
            block /= _along(divisor[columns], x.ndim)
            out[:, columns] = block
    return out


def _blocks(x: np.ndarray) -> Iterator[slice]:
    step = max(1, _BLOCK * x.shape[1] // x.size)
    for start in range(0, x.shape[1], step):
        yield slice(start, min(start + step, x.shape[1]))


def _along(values: np.ndarray, ndim: int) -> np.ndarray:
    """Reshape one value per column to broadcast over an array of `ndim` dimensions."""
    return values.reshape(-1, *(1,) * (ndim - 2))
