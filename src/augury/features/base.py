"""What a feature map is: inputs to vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from torch import Tensor, nn


class FeatureMap(nn.Module, ABC):
    """φ: a batch of inputs ``(b, *shape)`` to features ``(b, d)``.

    It is a module, so that it moves between devices and types as networks do. What it must learn
    from data (a bandwidth, the patches to whiten) it learns in `fit`, once, without augmentation.
    """

    def fit(self, x: Tensor, y: Tensor | None = None) -> Self:
        """Learn from a sample ``(N, *shape)`` and its targets ``(N, C)``; by default, nothing."""
        return self

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Map ``(b, *shape)`` to ``(b, d)``."""

    def describe(self) -> str:
        """Return a few words on what it is, with the numbers that matter."""
        return type(self).__name__
