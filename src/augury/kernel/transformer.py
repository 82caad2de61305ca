"""Augmented Fourier features as a step of a scikit-learn pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from augury._base.devices import resolve_device
from augury._base.errors import AuguryError
from augury.augmentations import Augmentation, parse
from augury.features.frequencies import bytes_to_draw
from augury.kernel.inputs import (
    check_range,
    read_inputs,
    to_floats,
    warn_of_range,
)
from augury.kernel.parameters import check_numbers
from augury.kernel.saved import Saved
from augury.kernel.solvers import check_fits

_SAMPLE = 1000
_BLOCK = 2**22


class AugmentedFourierFeatures(
    Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Map examples to ψ(x), the average of their versions' Fourier features.

    A linear model on them is trained with augmentation, to first order (Section 5.2).

    Parameters
    ----------
    augmentation, input_shape, features, kernel, nu, gamma, sampling, versions, mean, std, seed
        As for `AugmentedKernelClassifier`. For ``gamma="alignment"`` or ``"held-out"``, give y to
        `fit`: without it, the median is taken.
    memory
        GiB that frequencies, their transforms and features may take; half of what is free if not
        given.
    device
        Where they are computed.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> features = AugmentedFourierFeatures("rotation(10)", input_shape=(1, 8, 8), features=256)
    >>> make_pipeline(features, RidgeClassifier()).fit(X, y).predict(X[:3]).tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        augmentation: str | Augmentation = "identity",
        *,
        input_shape: tuple[int, ...] | None = None,
        features: int = 2048,
        kernel: str = "gaussian",
        nu: float = 1.5,
        gamma: float | str = "alignment",
        sampling: str = "iid",
        versions: int = 6,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        memory: float | None = None,
        device: str = "cpu",
        seed: int = 0,
    ) -> None:
        self.augmentation = augmentation
        self.input_shape = input_shape
        self.features = features
        self.kernel = kernel
        self.nu = nu
        self.gamma = gamma
        self.sampling = sampling
        self.versions = versions
        self.mean = mean
        self.std = std
        self.memory = memory
        self.device = device
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> AugmentedFourierFeatures:
        """Choose γ, draw the frequencies and transform them."""
        self._check()
        x = read_inputs(self, X, self.input_shape, reset=True)
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        like = torch.empty(0, dtype=dtype, device=resolve_device(self.device))
        count, pixels, item = int(self.features), x[0].numel(), like.element_size()
        self._check_fits(lambda d: bytes_to_draw(self.sampling, d // 2, pixels, item), count, like)
        generator = torch.Generator().manual_seed(int(self.seed))
        index = torch.randperm(len(x), generator=generator)[:_SAMPLE].to(x.device)
        sample = to_floats(x[index], like)
        check_range(sample, x)
        self.augmentation_ = parse(self.augmentation)
        self._psi = self._make_features()
        warn_of_range(self._psi.augmentation, sample)
        targets = None if y is None else _targets(y, len(x))[index.cpu()].to(sample)
        with torch.no_grad():
            self._psi.fit(sample, targets)
        self.gamma_, self.note_ = self._psi.phi.gamma_, self._psi.note
        self._n_features_out = self.features
        return self

    def _check(self) -> None:
        check_numbers(self)

    @torch.no_grad()
    def transform(self, X: Any) -> Any:
        """Give ψ(x), ``(n, features)``: a tensor where X is one, else an array."""
        check_is_fitted(self)
        x = read_inputs(self, X, self.input_shape, reset=False)
        like, psi = self._psi.weights, self._psi
        assert like is not None
        self._check_fits(lambda d: like.element_size() * d * len(x), psi.d, like)
        out, step = like.new_empty(len(x), psi.d), _BLOCK // psi.d + 1
        for part, rows in zip(x.split(step), out.split(step), strict=True):
            examples = to_floats(part, like)
            check_range(examples, part)
            rows.copy_(psi(examples))
        return out if isinstance(X, Tensor) else out.cpu().numpy()

    def _check_fits(self, need: Callable[[int], float], d: int, like: Tensor) -> None:
        check_fits(need, d, self._allowed_bytes(like.device))


def _targets(y: Any, count: int) -> Tensor:
    """Give targets Y with K_Y = YYᵀ: one-hot classes, or centred numbers."""
    values = np.asarray(y.cpu() if isinstance(y, Tensor) else y)
    if len(values) != count:
        raise AuguryError(f"X has {count} examples and y {len(values)}; give one target each")
    if values.ndim == 1 and values.dtype.kind != "f":
        _, numbers = np.unique(values, return_inverse=True)
        return torch.nn.functional.one_hot(torch.from_numpy(numbers)).double()
    numeric = torch.from_numpy(np.array(values, dtype=np.float64)).reshape(count, -1)
    if not bool(numeric.isfinite().all()):
        raise AuguryError("y holds NaN or infinity; drop or repair those examples")
    return numeric - numeric.mean(0)
