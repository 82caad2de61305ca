"""Values on a common scale: pixels in [0, 1], other features with mean 0 and variance 1."""

from __future__ import annotations

import math

import numpy as np

from augury._base.errors import AuguryError

_BLOCK = 1 << 22  # values looked at in one go, so that temporaries stay small


def span(x: np.ndarray, index: np.ndarray | None = None) -> tuple[float, float]:
    """Give the least and the largest value; raise where any is not finite.

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
    bad = np.concatenate(counts)
    first = int(np.argmax(bad > 0))
    if index is not None:
        first = int(index[first])
    raise AuguryError(
        f"{bad.sum():,} values in {np.count_nonzero(bad):,} examples are NaN or infinite, the "
        f"first of them in example {first}; drop or repair those examples"
    )


def scale_pixels(x: np.ndarray, low: float, high: float) -> tuple[np.ndarray, list[str]]:
    """Give images as bytes or as float32 in [0, 1], given the whole array's span."""
    if x.dtype in (np.uint8, np.bool_):
        if high == 1:
            return x.astype(np.uint8) * 255, ["pixels of 0 and 1 were taken as black and white"]
        return x.astype(np.uint8, copy=False), []
    if low >= 0 and high <= 1:
        return np.asarray(x, dtype=np.float32), []
    base = min(low, 0.0)
    out = np.empty(x.shape, dtype=np.float32)
    np.subtract(x, base, out=out, dtype=np.float64, casting="unsafe")  # in double, but no copy
    out /= (high - base) or 1.0
    np.clip(out, 0, 1, out=out)  # rounding can pass an end by one unit in the last place
    return out, [f"pixels from {base:g} to {high:g} were scaled to [0, 1]"]


def standardise(x: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Give each column, or each channel of series, mean 0 and variance 1, as float32.

    Constant columns become 0. Moments are taken in float64, a block of columns at a time.
    """
    out = np.empty(x.shape, dtype=np.float32)
    axes = (0, *range(2, x.ndim))
    step = max(1, _BLOCK * x.shape[1] // x.size)
    constant = 0
    for start in range(0, x.shape[1], step):
        columns = slice(start, start + step)
        block = x[:, columns].astype(np.float64)
        # By the peak first: no square overflows, and a constant is exactly 1, so its deviations 0.
        block /= np.maximum(np.abs(block).max(axis=axes, keepdims=True), np.finfo(float).tiny)
        flat = block.max(axis=axes, keepdims=True) == block.min(axis=axes, keepdims=True)
        block -= block.mean(axis=axes, keepdims=True)
        deviation = np.sqrt(np.square(block).mean(axis=axes, keepdims=True))
        out[:, columns] = block / np.where(flat, 1, deviation)
        constant += int(flat.sum())
    what = "column" if x.ndim == 2 else "channel"
    note = f"each {what} was standardised to mean 0 and variance 1"
    if constant:
        note += f"; {constant} constant {what}{'s' if constant > 1 else ''} became 0"
    return out, [note]
