"""The kernel's width γ from data: by alignment, the median distance or held-out risk."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury.features.target_alignment import kernel_alignment

RULES = ("alignment", "median", "held-out")
_GRID = [2.0**k for k in range(-6, 7)]  # round the median heuristic
_RIDGES = [10.0**k for k in range(-6, 0)]  # of the kernel's mean diagonal, which is 1

Kernel = Callable[[Tensor, float], Tensor]
"""From distances and γ to kernel values."""


def choose_gamma(
    rule: str, distances: Tensor, y: Tensor | None, kernel: Kernel, power: int
) -> float:
    """Choose γ from the distances ``(N, N)`` of a sample and its targets ``(N, C)``.

    Parameters
    ----------
    rule
        ``"median"``: one over the median of distance^power. ``"alignment"``: of a grid round that,
        the γ whose kernel agrees best with YYᵀ (Appendix E.1 of the paper). ``"held-out"``: the γ
        whose kernel ridge regression, trained on one half, errs least on the other, at its best
        penalty. Without targets, all take the median.
    distances, y
        Of the sample.
    kernel
        From distances and γ to kernel values.
    power
        The power of the distance that γ multiplies: 2 for the Gaussian, 1 for the Laplacian.

    Notes
    -----
    O(13 N²) for the alignment, O(13 N³) for the held-out risk.
    """
    if rule not in RULES:
        raise AuguryError(f"gamma must be a number or one of {', '.join(RULES)}, not {rule!r}")
    apart = distances[distances > 0].pow(power)
    median = float(apart.median()) if len(apart) else 1.0
    if rule == "median" or y is None:
        return 1 / median
    grid = [factor / median for factor in _GRID]
    if rule == "alignment":
        target = (y @ y.mT).to(distances)
        scores = [float(kernel_alignment(kernel(distances, gamma), target)) for gamma in grid]
    else:
        scores = [-_risk(kernel(distances, gamma), y.to(distances)) for gamma in grid]
    return grid[max(range(len(grid)), key=scores.__getitem__)]


def _risk(kernel: Tensor, y: Tensor) -> float:
    """Return the least squared error on the odd examples of ridge regression on the even ones."""
    mean = y[::2].mean(0)
    values, vectors = torch.linalg.eigh(kernel[::2, ::2])
    at, project = kernel[1::2, ::2] @ vectors, vectors.mT @ (y[::2] - mean)
    risks = []
    for ridge in _RIDGES:
        out = at @ (project / (values + ridge * len(values)).unsqueeze(1))
        risks.append(float((out + mean - y[1::2]).square().mean()))
    return min(risks)
