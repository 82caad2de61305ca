"""The contributions of the parts of a policy, as far as a trial can tell them apart."""

from __future__ import annotations

from collections.abc import Sequence


def pool(lost: Sequence[float], often: Sequence[float], error: float) -> list[float]:
    """Return the contribution of each part, shrunk by what is known about all parts.

    A part was chosen because it helps, and adds the more the more often it is applied: pᵢ times.
    So what was lost without it, dᵢ, is taken as c·pᵢ + rᵢ with c = Σ p d / Σ p² from all parts, and
    of the rest rᵢ what exceeds noise: w = max(0, 1 − ε² / s²) with s² the variance of the rᵢ.

    Parameters
    ----------
    lost
        dᵢ: the gain of the whole over the whole without each part.
    often
        pᵢ: how often each part is applied to an image, on average.
    error
        ε: the standard error of each dᵢ.
    """
    if not any(often):
        return list(lost)
    whole = sum(p * d for p, d in zip(often, lost, strict=True)) / sum(p * p for p in often)
    rest = [d - whole * p for p, d in zip(often, lost, strict=True)]
    variance = sum(r * r for r in rest) / max(1, len(rest) - 1)
    kept = max(0.0, 1 - error**2 / variance) if variance > 0 else 0.0
    return [whole * p + kept * r for p, r in zip(often, rest, strict=True)]
