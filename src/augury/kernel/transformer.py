"""Augmented Fourier features as a step of a scikit-learn pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from augury._base.devices import resolve_device
from augury._base.errors import AuguryError
from augury.augmentations import parse
from augury.features.frequencies import bytes_to_draw
from augury.kernel.estimator import FourierEstimator
from augury.kernel.inputs import (
    check_range,
    read_inputs,
    read_target,
    to_floats,
    warn_of_range,
)
from augury.kernel.parameters import seed_from
from augury.kernel.solvers import check_fits

_SAMPLE = 1000
_BLOCK = 2**22


class AugmentedFourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FourierEstimator):
    """Map examples to ψ(x), the average of their views' Fourier features.

    A linear model on them is trained with augmentation, to first order (Section 5.2).

    Parameters
    ----------
    gamma
        As for `FourierFeatures`. ``"alignment"`` and ``"held-out"`` need y in `fit`; without it,
        the median rule is used.
    augmentation, input_shape, n_components, kernel, nu, sampling, n_views, mean, std
        As for `AugmentedKernelClassifier`.
    memory, device, random_state
        As for `AugmentedKernelClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> features = AugmentedFourierFeatures("rotation(10)", input_shape=(1, 8, 8), n_components=256)
    >>> make_pipeline(features, RidgeClassifier()).fit(X, y).predict(X[:3]).tolist()
    [0, 1, 2]
    """

    def fit(self, X: Any, y: Any = None) -> AugmentedFourierFeatures:
        """Choose γ, draw the frequencies and transform them."""
        self.check_parameters()
        self.seed_ = seed_from(self.random_state)
        x = read_inputs(self, X, self.input_shape, reset=True)
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        like = torch.empty(0, dtype=dtype, device=resolve_device(self.device))
        count, pixels, item = self._d, x[0].numel(), like.element_size()
        self._check_fits(lambda d: bytes_to_draw(self.sampling, d // 2, pixels, item), count, like)
        generator = torch.Generator().manual_seed(self.seed_)
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
        self._n_features_out = self._d
        return self

    @torch.no_grad()
    def transform(self, X: Any) -> Any:
        """Return ψ(x), ``(n, features)``: a tensor where X is one, else an array."""
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
    """Return targets Y with K_Y = YYᵀ: one-hot classes, or centred numbers."""
    values = np.asarray(read_target(y))
    if len(values) != count:
        raise AuguryError(
            f"X has {count} examples and y has {len(values)}; pass one target per example"
        )
    if values.ndim == 1 and values.dtype.kind != "f":
        _, numbers = np.unique(values, return_inverse=True)
        return torch.nn.functional.one_hot(torch.from_numpy(numbers)).double()
    numeric = torch.from_numpy(np.array(values, dtype=np.float64)).reshape(count, -1)
    if not bool(numeric.isfinite().all()):
        raise AuguryError("y holds NaN or infinity; drop or repair those examples")
    return numeric - numeric.mean(0)
