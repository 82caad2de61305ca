"""Series with missing values and of unequal lengths, made whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import count
from augury.data.limits import check_bytes
from augury.data.scaling import refuse_bad


def stack_series(
    series: Sequence[np.ndarray], length: int | None = None
) -> tuple[np.ndarray, list[str]]:
    """Put series of one number of channels into one array, and say what was done.

    Shorter series are padded at their end with their last value, which is also what a shift along
    the axis reads there.

    Parameters
    ----------
    series
        Arrays ``(channels, length)``; missing values are NaN.
    length
        The length that all get, for new data of a model: longer ones are cut. By default that of
        the longest.
    """
    channels = len(series[0])
    for number, one in enumerate(series):
        if len(one) != channels:
            raise AuguryError(
                f"series must have the same number of channels: example {number} has {len(one)}, "
                f"the first has {channels}"
            )
        if one.shape[1] == 0:
            raise AuguryError(f"example {number} is a series without values; leave it out")
    lengths = np.array([one.shape[1] for one in series])
    longest = int(lengths.max()) if length is None else length
    check_bytes(len(series) * channels * longest * 8, "the series", "give fewer or shorter ones")
    refuse_bad(np.array([np.isinf(one[:, :longest]).sum() for one in series]))
    out = np.empty((len(series), channels, longest))
    for row, one in zip(out, series, strict=True):
        used = min(one.shape[1], longest)
        row[:, :used] = one[:, :used]
        row[:, used:] = one[:, used - 1 : used]
    notes = []
    if lengths.min() < longest:
        notes.append(
            f"series of {lengths.min():,} to {min(lengths.max(), longest):,} values were padded to "
            f"{longest:,} with their last value"
        )
    if lengths.max() > longest:
        notes.append(f"series of more than {longest:,} values were cut to the model's length")
    return out, notes


def fill_gaps(x: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Fill missing values of series ``(N, channels, length)``, and say how many there were.

    A gap is bridged by a straight line, and ends are held. A channel of which an example has no
    value becomes that channel's mean over all examples.
    """
    if x.dtype.kind != "f":
        return x, []
    missing = np.isnan(x)
    gaps = int(missing.sum())
    if gaps == 0:
        return x, []
    empty = missing.all(axis=(0, 2))
    if empty.any():
        raise AuguryError(
            f"channel {int(np.argmax(empty)) + 1} of {x.shape[1]} has no value in any series; "
            "leave it out"
        )
    nothing = missing.all(axis=(1, 2))
    if nothing.any():
        raise AuguryError(
            f"no value at all in {int(nothing.sum()):,} of the series, the first of them example "
            f"{int(np.argmax(nothing))}; leave them out"
        )
    x = x.copy()
    with np.errstate(invalid="ignore", over="ignore"):  # infinite values are refused later
        means = np.nanmean(x.astype(np.float64), axis=(0, 2))
    time = np.arange(x.shape[2])
    for i, c in zip(*np.nonzero(missing.any(axis=2)), strict=True):
        gap = missing[i, c]
        if gap.all():
            x[i, c] = means[c]
        else:
            x[i, c, gap] = np.interp(time[gap], time[~gap], x[i, c, ~gap])
    share = 100 * gaps / x.size
    rows = int(missing.any(axis=(1, 2)).sum())
    filled = "was" if gaps == 1 else "were"
    mean = ", or, where a series has no value in a channel, by the mean of the channel"
    return x, [
        f"{count(gaps, 'missing value')} in {rows:,} series ({share:.1f} % of all) {filled} filled "
        f"by linear interpolation{mean if missing.all(axis=2).any() else ''}"
    ]
