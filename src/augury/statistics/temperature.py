"""Temperature scaling (Guo et al., 2017): confidence is fitted, so that knowledge is judged."""

from __future__ import annotations

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_list, as_number, check_tensors

Bounds = tuple[float, float]

_BOUNDS: Bounds = (1e-3, 1e4)
_HALVINGS = 26  # of log s over its 16 nats: s is found to 1e-6, so the loss is right to 1e-12


def fit_scale(logits: Tensor, y: Tensor, *, bounds: Bounds = _BOUNDS) -> Tensor:
    """Return the inverse temperature s at which the mean log-loss of softmax(s · logits) is least.

    The mean is convex in s, so its derivative E[Σ_c p_c z_c − z_y] changes sign once, and
    bisection on log s finds where. Each member has an s of its own, fitted over all examples.

    Parameters
    ----------
    logits
        z, ``(N, C)`` or ``(N, members, C)``.
    y
        Class numbers ``(N,)``, the same for all members.
    bounds
        The least and the largest s that is considered.

    Returns
    -------
    scale
        ``()`` or ``(members,)``, within `bounds`.

    Notes
    -----
    26 passes over the logits. Predictions without an error get the largest s that is allowed.
    """
    _check(logits, y, bounds)
    own = _own(logits, y)
    low, high = (logits.new_full(own.shape[1:], bound).log() for bound in bounds)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        chance = (logits * middle.exp().unsqueeze(-1)).softmax(-1)
        rising = ((chance * logits).sum(-1) - own).mean(0) > 0
        low, high = torch.where(rising, low, middle), torch.where(rising, middle, high)
    return ((low + high) / 2).exp()


def calibrated_log_loss(logits: Tensor, y: Tensor, *, bounds: Bounds = _BOUNDS) -> Tensor:
    """Return −log softmax(s z)_y of each example, at the s of `fit_scale`.

    Parameters
    ----------
    logits
        z, ``(N, C)`` or ``(N, members, C)``.
    y
        Class numbers ``(N,)``.
    bounds
        The least and the largest s.

    Returns
    -------
    losses
        ``(N,)`` or ``(N, members)``.
    """
    scaled = logits * fit_scale(logits, y, bounds=bounds).unsqueeze(-1)
    return scaled.logsumexp(-1) - _own(scaled, y)


def _check(logits: Tensor, y: Tensor, bounds: Bounds) -> None:
    check_tensors(logits=logits, y=y)
    floats = logits.is_floating_point() and not y.is_floating_point()
    if logits.dim() not in (2, 3) or y.shape != logits.shape[:1] or not len(y) or not floats:
        raise AuguryError(
            "expected floating-point logits (N, C) or (N, members, C) and class numbers (N,), got "
            f"{tuple(logits.shape)} of {logits.dtype} and {tuple(y.shape)} of {y.dtype}"
        )
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= logits.shape[-1]:
        raise AuguryError(
            f"class numbers must be from 0 to {logits.shape[-1] - 1}, got {low} to {high}"
        )
    ends = [as_number("bounds", bound, positive=True) for bound in as_list("bounds", bounds)]
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise AuguryError(f"bounds must be the least and the largest scale, got {ends}")


def _own(logits: Tensor, y: Tensor) -> Tensor:
    """Return each example's logit of its own class: ``(N,)`` or ``(N, members)``."""
    index = y.view(-1, *[1] * (logits.dim() - 1)).expand(*logits.shape[:-1], 1)
    return logits.gather(-1, index).squeeze(-1)
