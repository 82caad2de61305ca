"""What a feature map is: inputs to vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.given import check_batch, check_tensor, check_tensors


class FeatureMap(nn.Module, ABC):
    """φ: a batch of inputs ``(b, *shape)`` to features ``(b, d)``.

    It is a module, so that it moves between devices and types as networks do. What it must learn
    from data (a bandwidth, the patches to whiten) it learns in `fit`, once, without augmentation.
    """

    def fit(self, x: Tensor, y: Tensor | None = None) -> Self:
        """Learn from a sample ``(N, *shape)`` and its targets ``(N, C)``; by default, nothing."""
        return self

    def __call__(self, x: Tensor) -> Tensor:
        check_tensor(x)
        if x.dim() < 2:
            raise AuguryError(f"x must be a batch of examples, got shape {tuple(x.shape)}")
        return super().__call__(x)

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Map ``(b, *shape)`` to ``(b, d)``."""

    def describe(self) -> str:
        """Return a few words on what it is, with the numbers that matter."""
        return type(self).__name__


def check_sample(x: Any, y: Any) -> None:
    """Raise one clear line unless a map can be fitted to these examples and targets."""
    check_batch(x)
    if x.dim() < 2 or not x.is_floating_point():
        raise AuguryError(
            f"x must be a batch of floating-point examples, got shape {tuple(x.shape)} of "
            f"{x.dtype}; pass pixels as x.float() / 255"
        )
    if y is not None:
        check_tensors(y=y)
        if len(x) != len(y):
            raise AuguryError(f"y must have one target for each of the {len(x)} examples")
