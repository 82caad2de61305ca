"""The jackknife: the error of an estimate from its values when each group is left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import torch
from scipy.special import stdtrit
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_number
from augury._base.text import kind_of


class Interval(NamedTuple):
    """An estimate with its standard error and a confidence interval.

    Attributes
    ----------
    value
        The estimate from all examples.
    error
        Its standard error; infinite where fewer than two groups were left out.
    low, high
        The ends of the interval, `value` ∓ `half`.
    half
        Half of the width of the interval.
    """

    value: float
    error: float
    low: float
    high: float
    half: float


def jackknife(
    value: float, replicates: Tensor | Sequence[float], *, level: float = 0.95
) -> Interval:
    """Return the standard error and the interval of an estimate from its replicates.

    With replicates θ_g, the estimates without group g of G, the variance of the estimate is
    (G − 1)/G Σ (θ_g − θ̄)² (Tukey, 1958), and the interval uses Student's t with G − 1 degrees of
    freedom. A non-finite replicate gives an error that is not finite.

    Parameters
    ----------
    value
        The estimate from all examples.
    replicates
        ``(G,)``: the estimate when each group is left out; for a difference of two estimates over
        the same groups, the differences of their replicates.
    level
        The probability with which the interval holds the true value.

    Examples
    --------
    >>> found = jackknife(2.0, [1.0, 2.0, 3.0])
    >>> round(found.error, 3), round(found.half, 3)
    (1.155, 4.968)
    """
    try:
        values = torch.as_tensor(replicates, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):  # of words, None and ragged lists
        raise AuguryError(f"replicates must be numbers, got {kind_of(replicates)}") from None
    if values.dim() != 1:
        raise AuguryError(f"replicates must be a list of numbers, got shape {tuple(values.shape)}")
    if not isinstance(value, Real):
        raise AuguryError(f"value must be a number, got {kind_of(value)}")
    if not 0 < as_number("level", level) < 1:
        raise AuguryError(f"level must be a probability between 0 and 1, got {level}")
    groups = len(values)
    if groups < 2:
        return Interval(value, math.inf, -math.inf, math.inf, math.inf)
    deviations = values - values.mean()
    error = math.sqrt((groups - 1) / groups * float(deviations.square().sum()))
    half = float(stdtrit(groups - 1, (1 + level) / 2)) * error
    return Interval(value, error, value - half, value + half, half)
