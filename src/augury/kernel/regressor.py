"""Kernel ridge regression trained with augmentation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from augury._base.errors import AuguryError, one_line
from augury._base.text import count
from augury.cluster import Cluster
from augury.data.stream import Shards
from augury.kernel.base import KernelModel, Progress
from augury.kernel.inputs import read_inputs, read_target
from augury.kernel.streamed import streamed

_ROUNDING = 1e-12
"""Values that differ by less than this share of their mean are one value, rounded."""


@dataclass(eq=False, repr=False, kw_only=True)
class AugmentedKernelRegressor(RegressorMixin, KernelModel):
    """Predict numbers by ridge regression on Fourier features averaged over an augmentation.

    Parameters
    ----------
    gamma
        As for `FourierFeatures`; by default, the γ with the smallest held-out error.
    augmentation, input_shape, n_components, kernel, nu, sampling, n_views, mean, std
        As for `AugmentedKernelClassifier`.
    objective, ridge, prediction, precision, memory, device, random_state
        As for `AugmentedKernelClassifier`.

    Attributes
    ----------
    risk_
        The estimated squared error on new data, by generalised cross-validation. For several
        outputs, the sum of their errors, each as a share of the variance of its output.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = AugmentedKernelRegressor("jitter(0.1)", n_components=256, n_views=8)
    >>> bool(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.98)
    True
    """

    gamma: float | str = "held-out"

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        progress: Progress = lambda done, total: None,
        cluster: Cluster = None,
        journal: str | Path | None = None,
    ) -> AugmentedKernelRegressor:
        """Choose γ and λ, and solve for the weights; y is ``(n,)`` or ``(n, outputs)``.

        The result of `augury.open_shards`, as `X` alone, is streamed: only the Gram matrix and one
        block of examples are held in memory. `cluster` and `journal` are as for
        `AugmentedKernelClassifier.fit`, but only for such shards: with an array, a cluster is
        refused and a journal is ignored.
        """
        self.check_parameters()
        if isinstance(X, Shards):
            return self._fit_shards(X, y, progress, cluster, journal)
        if cluster is not None:
            raise AuguryError(
                "a cluster can fit a regressor only to shards; see augury.open_shards"
            )
        x = read_inputs(self, X, self.input_shape, reset=True)
        target = read_target(y)
        with one_line():
            values = check_array(target, ensure_2d=False, dtype="float64", input_name="y")
        if len(values) != len(x):
            raise AuguryError(
                f"X has {count(len(x), 'example')} and y has {len(values)}; pass one value per "
                "example"
            )
        self._flat = values.ndim == 1
        target = torch.from_numpy(values.reshape(len(values), -1).copy())
        mean, spread = target.mean(0), target.std(0, correction=0)
        scale = spread.where(spread > _ROUNDING * mean.abs(), 1.0)  # else a column is constant
        if not float(torch.cat([mean.abs(), scale]).max()) <= 1e30:
            raise AuguryError(
                f"y holds numbers up to {float(target.abs().max()):.0e}; divide it by a number "
                "that brings it near 1"
            )
        centred = (target - mean) / scale
        self._fit_features(x, centred)
        like = self._psi.weights
        assert like is not None
        self._solve_quadratic(x, centred.to(like), progress)
        self._weights = self._weights * scale.to(like)
        self._bias = mean.to(like.device)  # in float64: it may be far larger than what varies
        if len(scale) == 1:
            self.risk_ = self.risk_ * float(scale.square())
        return self

    def _fit_shards(
        self, X: Shards, y: Any, progress: Progress, cluster: Cluster, journal: str | Path | None
    ) -> AugmentedKernelRegressor:
        if y is not None or X.about.classes is not None:
            raise AuguryError("shards for a regressor must have numbers as labels; do not pass y")
        sample = read_inputs(self, X.about.x, self.input_shape, reset=True)
        self._flat = True
        mean, scale = float(X.y.mean()), max(float(X.y.std(correction=0)), 1e-30)
        self._fit_features(sample, ((X.about.y - mean) / scale).unsqueeze(1))
        with streamed(self, X, cluster, journal, mean=mean, scale=scale) as stream:
            self._solve_quadratic(stream, None, progress)
        self._weights = self._weights * scale
        # labels of shards are centred, as those of a data set are
        self._bias = torch.tensor([mean + X.preparation.centre], dtype=torch.float64)
        self.risk_ = self.risk_ * scale**2
        return self

    def __sklearn_tags__(self) -> Any:
        """Declare that y may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any) -> np.ndarray:
        """Return the value of each row."""
        check_is_fitted(self)
        out = self._outputs(read_inputs(self, X, self.input_shape, reset=False)).numpy()
        return out[:, 0] if self._flat else out
