"""How good predictions of examples that a fit did not see are, with error bars."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from augury.statistics.base import Estimate, group_of

_SCALES = (1e-3, 1e4)
_HALVINGS = 26  # of the logarithm of the scale: to 1e-6, so that the loss is right to 1e-12


@dataclass(frozen=True, eq=False)
class HeldOut:
    """All examples, as they are judged when the fold they are in was held out.

    Attributes
    ----------
    features
        ``(N, d)``, what predictions are made from.
    targets
        ``(N, C)``: one-hot classes, or real targets.
    classes
        Whether the targets are classes.
    groups
        How many groups of examples are left out in turn, for error bars.
    """

    features: Tensor
    targets: Tensor
    classes: bool
    groups: int = 20

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, HeldOut)
            and (self.classes, self.groups) == (other.classes, other.groups)
            and torch.equal(self.features, other.features)
            and torch.equal(self.targets, other.targets)
        )

    __hash__ = None  # type: ignore[assignment]  # tensors are compared by what they hold

    def estimate(self, predictions: Tensor) -> Estimate:
        """Judge predictions ``(L, N, C)`` made in L ways, and keep the best way.

        The value is minus the mean loss: log-loss after calibration for classes, squared error
        for a real target. Replicates leave out the losses of a group; nothing is fitted again.
        """
        targets = self.targets.to(predictions)
        if self.classes:
            losses = calibrated_log_loss(predictions, targets)
        else:
            losses = (predictions - targets).square().sum(-1)
        loss = losses[losses.mean(1).argmin()]
        group = group_of(torch.arange(len(loss), device=loss.device), self.groups)
        by_group = loss.new_zeros(self.groups, 2)
        by_group.index_add_(0, group, torch.stack([loss, torch.ones_like(loss)], 1))
        total, count = (by_group.sum(0) - by_group).unbind(1)
        per_class = loss.new_zeros(0)
        if self.classes:
            per_class = -(loss @ targets) / targets.sum(0).clamp_min(1)
        return Estimate(-float(loss.mean()), (-total / count).cpu(), per_class.cpu())


def calibrated_log_loss(predictions: Tensor, targets: Tensor) -> Tensor:
    """Give −log softmax(s·ŷ)_y of each example, with the one scale s that makes its mean least.

    s is the inverse temperature (Guo et al., 2017). The mean is convex in s, so its derivative
    E[Σ_c p_c ŷ_c − ŷ_y] has one zero, found by bisection.

    Parameters
    ----------
    predictions
        ``(L, N, C)``; each of the L has its own scale.
    targets
        ``(N, C)``, one-hot.
    """
    own = (predictions * targets).sum(-1)
    low, high = (predictions.new_full((len(predictions), 1, 1), math.log(s)) for s in _SCALES)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        expected = ((middle.exp() * predictions).softmax(-1) * predictions).sum(-1)
        rising = ((expected - own).mean(1) > 0)[:, None, None]
        low, high = torch.where(rising, low, middle), torch.where(rising, middle, high)
    scaled = ((low + high) / 2).exp() * predictions
    return scaled.logsumexp(-1) - (scaled * targets).sum(-1)
