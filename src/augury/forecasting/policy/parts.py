"""The contributions of the parts of a policy, as far as a trial can tell them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def pool(lost: Sequence[float], often: Sequence[float], gain: float, error: float) -> list[float]:
    """Return the contribution of each part, shrunk towards what the whole policy gains.

    Before the parts are tried, each is expected to contribute cpᵢ, in proportion to how often it is
    applied, where c is G / Σp, the whole gain shared out, with a standard deviation of
    √(G² + ε²) / Σp. The contributions stray from this by independent amounts of variance τ². What
    was lost without each part, dᵢ, differs from its contribution by the noise of two training runs,
    one of which, that of the whole policy, all parts have in common: with σ² = ε² / 2, the
    covariance of the noise is Σ = σ²(1 + 11ᵀ). The result is the mean of the contributions given d.
    Of the variance of d about its best multiple of p, τ² is what exceeds ε².

    Parameters
    ----------
    lost
        dᵢ: the gain of the whole over the whole without each part.
    often
        pᵢ: how often each part is applied to an image, on average.
    gain
        G: the gain of the whole policy, from earlier rounds.
    error
        ε: the standard error of each dᵢ.
    """
    d, p = np.array(lost, float), np.array(often, float)
    if not p.any() or error == 0:
        return list(map(float, d))
    rest = d - p * (p @ d) / (p @ p)
    own = max(0.0, float(rest @ rest) / max(1, len(d) - 1) - error**2)
    expected = gain / p.sum() * p
    prior = (gain**2 + error**2) / p.sum() ** 2 * np.outer(p, p) + own * np.eye(len(d))
    noise = error**2 / 2 * (np.eye(len(d)) + 1)
    found = expected + prior @ np.linalg.solve(prior + noise, d - expected)
    return [float(value) for value in found]
