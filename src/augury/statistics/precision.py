"""Average precision of the labels of each example, for multi-label targets."""

from __future__ import annotations

from torch import Tensor


def average_precision(scores: Tensor, y: Tensor) -> Tensor:
    """Return the average precision of each example's ranking of labels, ``(...)`` of ``(..., k)``.

    For every label that the example has: the share of labels it has among those that are scored as
    high or higher; averaged over its labels (the mean over examples is label-ranking average
    precision). An example that has none, or all, is ranked right however it is.
    """
    own = y > 0.5
    above = scores.unsqueeze(-2) >= scores.unsqueeze(-1)  # [..., j, l]: l is scored as j or higher
    rank = above.sum(-1)
    hits = (above & own.unsqueeze(-2)).sum(-1)
    precision = (hits / rank.clamp_min(1)) * own
    count = own.sum(-1)
    mean = precision.sum(-1) / count.clamp_min(1)
    return mean.masked_fill((count == 0) | (count == own.shape[-1]), 1.0)
