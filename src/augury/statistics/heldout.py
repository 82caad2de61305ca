"""How good predictions of examples that a fit did not see are, with error bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_whole, check_tensors
from augury._base.text import count
from augury.statistics.base import Estimate, group_of
from augury.statistics.temperature import calibrated_log_loss

_STEP = math.sqrt(10)


@dataclass(frozen=True, eq=False)
class HeldOutRisk:
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

    def __post_init__(self) -> None:
        check_tensors(features=self.features, targets=self.targets)
        shapes = [tuple(part.shape) for part in (self.features, self.targets)]
        if [len(shape) for shape in shapes] != [2, 2] or shapes[0][0] != shapes[1][0]:
            raise AuguryError(
                "expected features (examples, features) and targets (examples, classes), got "
                f"shapes {shapes[0]} and {shapes[1]}"
            )
        as_whole("groups", self.groups, 2)

    def __eq__(self, other: object) -> bool:
        """Compare by content: statistics that are added must be judged on the same examples."""
        return self is other or (
            isinstance(other, HeldOutRisk)
            and (self.classes, self.groups) == (other.classes, other.groups)
            and torch.equal(self.features, other.features)
            and torch.equal(self.targets, other.targets)
        )

    def losses(self, predictions: Tensor) -> Tensor:
        """Return the loss of each prediction ``(N, C)``: log-loss, or 1 − R² on average."""
        check_tensors(predictions=predictions)
        if predictions.shape != self.targets.shape:
            raise AuguryError(
                f"predictions must have the shape {tuple(self.targets.shape)} of the targets, got "
                f"{tuple(predictions.shape)}"
            )
        targets = self.targets.to(predictions)
        if self.classes:
            return calibrated_log_loss(predictions, targets.argmax(-1))
        return (predictions - targets).square().sum(-1) / self._variance().to(predictions)

    def best(self, predict: Callable[[float], Tensor], ratios: Sequence[float]) -> Estimate:
        """Judge `predict` at these penalties, then at √10 to either side of the best of them."""
        tried = [self._try(predict, ratio) for ratio in ratios]
        at = min(tried, key=lambda one: one[0])[1]
        tried += [self._try(predict, ratio) for ratio in (at / _STEP, at * _STEP)]
        value, _, loss = min(tried, key=lambda one: one[0])
        if not math.isfinite(value):
            raise AuguryError(
                "the features of these examples are not finite; use another feature map"
            )
        return self.estimate(loss)

    def _try(self, predict: Callable[[float], Tensor], ratio: float) -> tuple[float, float, Tensor]:
        loss = self.losses(predict(ratio))
        return float(loss.mean().nan_to_num(torch.inf)), ratio, loss

    def estimate(self, loss: Tensor) -> Estimate:
        """Return minus the mean loss ``(N,)``; replicates leave out groups and refit nothing."""
        check_tensors(loss=loss)
        if loss.shape != self.targets.shape[:1] or not loss.is_floating_point():
            raise AuguryError(
                f"expected one loss for each of the {len(self.targets)} examples, got shape "
                f"{tuple(loss.shape)} of {loss.dtype}"
            )
        group = group_of(torch.arange(len(loss), device=loss.device), self.groups)
        by_group = loss.new_zeros(self.groups, 2)
        by_group.index_add_(0, group, torch.stack([loss, torch.ones_like(loss)], 1))
        total, count = (by_group.sum(0) - by_group).unbind(1)
        per_class, by_class = loss.new_zeros(0), loss.new_zeros(0, 0)
        if self.classes:
            targets = self.targets.to(loss)
            sums = loss.new_zeros(self.groups, 2, targets.shape[1])
            sums.index_add_(0, group, torch.stack([loss.unsqueeze(1) * targets, targets], 1))
            lost, members = sums.sum(0)
            per_class = -lost / members.clamp_min(1)
            lost, members = (sums.sum(0) - sums).unbind(1)
            by_class = -lost / members.clamp_min(1)
        return Estimate(
            -float(loss.mean()), (-total / count).cpu(), per_class.cpu(), -self._loss_of_chance(),
            by_class.cpu(),
        )  # fmt: skip

    def _loss_of_chance(self) -> float:
        """Return the least loss of one prediction for all: an entropy, or 1."""
        if not self.classes:
            return 1.0
        return float(torch.special.entr(self.targets.double().mean(0)).sum())

    def _variance(self) -> Tensor:
        """Return the variance of real targets; 1 where they do not vary."""
        targets = self.targets.double()
        found = (targets - targets.mean(0)).square().sum(1).mean()
        return torch.where(found > 0, found, torch.ones_like(found))


def folds_of(examples: int, folds: int, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """Return the indices inside and outside of each fit; a fold that no example fell into has none.

    An example's fold follows from its index alone, and holds whole groups of `HeldOutRisk` where
    their number is a multiple of `folds`.
    """
    fold = group_of(torch.arange(examples, device=device), folds)
    parts = [(fold != f, fold == f) for f in range(folds)]
    if not all(bool(inside.any()) for inside, _ in parts):
        raise AuguryError(
            f"no example can be held out: {count(examples, 'example')} fell into one fold; "
            "give more examples"
        )
    return [(inside.nonzero()[:, 0], outside.nonzero()[:, 0]) for inside, outside in parts]
