"""One feature map after another: a kernel on local features in place of pixels."""

from __future__ import annotations

from typing import Self

from torch import Tensor

from augury._base.given import check_kind
from augury.features.base import FeatureMap


class Composed(FeatureMap):
    """φ(x) = outer(inner(x)), each fitted to what it is given.

    Fourier features of random patches are those of a kernel that compares images by what is in
    each of their parts, and not pixel by pixel.

    Parameters
    ----------
    inner
        From examples to vectors.
    outer
        From those vectors to features.

    Examples
    --------
    >>> import torch
    >>> from augury.features import FourierFeatures, PatchFeatures
    >>> digits = torch.rand(20, 1, 8, 8)
    >>> phi = Composed(PatchFeatures(4), FourierFeatures(64, gamma="median")).fit(digits)
    >>> phi(digits).shape
    torch.Size([20, 64])
    """

    def __init__(self, inner: FeatureMap, outer: FeatureMap) -> None:
        super().__init__()
        for name, value in (("inner", inner), ("outer", outer)):
            check_kind(name, value, FeatureMap, "a FeatureMap")
        self.inner, self.outer = inner, outer

    def fit(self, x: Tensor, y: Tensor | None = None) -> Self:
        self.inner.fit(x, y)
        self.outer.fit(self.inner(x), y)
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x))

    def describe(self) -> str:
        return f"{self.outer.describe()} of {self.inner.describe()}"
