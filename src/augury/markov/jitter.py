"""The kernel of Gaussian jitter (Appendix B.2), as a scikit-learn kernel and as random features."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, StationaryKernelMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from augury._base.errors import AuguryError, one_line
from augury._base.given import as_number, as_numbers, as_whole


def effective_bandwidth(sigma: float, beta: float) -> float:
    """Return σ√(1+β): the standard deviation, a coordinate, of a walk that has left its example.

    The number of steps N is geometric, and given N ≥ 1 its mean is 1 + β; each adds σ². (All
    walks together, those that stay included, have variance βσ².)
    """
    _check(sigma, beta)
    return sigma * math.sqrt(1 + beta)


def jitter_density(squared: Any, sigma: float, beta: float, d: int) -> np.ndarray:
    """Return the density of K between two points at these squared distances, its atom left out.

    K = (1/(1+β)) [δ + Σ_{i≥1} (β/(1+β))^i N(0, iσ²I)], with N the normalised Gaussian density in
    d dimensions: the law of a point after a geometric number of jitters of standard deviation σ.
    The atom δ, of mass 1/(1+β), is the point itself. The sum is cut where the mass that is left
    is below rounding: about 37(1+β) terms.
    """
    _check(sigma, beta)
    squared, d = as_numbers("squared", squared), as_whole("d", d, 1)
    weights = _weights(beta)
    total = np.zeros_like(squared)
    for i, weight in enumerate(weights, start=1):
        spread = i * sigma**2
        total += weight * (2 * math.pi * spread) ** (-d / 2) * np.exp(squared / (-2 * spread))
    return total / (1 + beta)


class JitterKernel(StationaryKernelMixin, Kernel):  # type: ignore[misc]  # as scikit-learn's own
    """The jitter kernel, scaled to 1 at distance 0, for scikit-learn's Gaussian processes.

    k(x, y) = Σ_i w_i exp(−‖x−y‖² / (2iσ²)) with w_i ∝ (β/(1+β))^i i^(−d/2), Σ w_i = 1: the density
    part of `jitter_density`. The atom δ only tells an example from its neighbours: add a
    `WhiteKernel` for it. As a callable, ``SVC(kernel=JitterKernel(0.3, 4))`` takes it too.

    Parameters
    ----------
    sigma
        σ, the standard deviation of one jitter.
    beta
        β, the rate of jittering against restarts: the mean number of jitters.
    sigma_bounds, beta_bounds
        Where a Gaussian process may look for them; ``"fixed"`` to keep them.

    Notes
    -----
    About 37(1+β) exponentials an entry.
    """

    def __init__(
        self,
        sigma: float = 1.0,
        beta: float = 1.0,
        sigma_bounds: Any = (1e-5, 1e5),
        beta_bounds: Any = (1e-3, 1e3),
    ) -> None:
        self.sigma, self.beta = sigma, beta
        self.sigma_bounds, self.beta_bounds = sigma_bounds, beta_bounds

    @property
    def hyperparameter_sigma(self) -> Hyperparameter:
        return Hyperparameter("sigma", "numeric", self.sigma_bounds)

    @property
    def hyperparameter_beta(self) -> Hyperparameter:
        return Hyperparameter("beta", "numeric", self.beta_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        _check(self.sigma, self.beta)
        X = _rows("X", X)
        if eval_gradient and Y is not None:
            raise ValueError("the gradient is known for Y=None only")  # as scikit-learn's kernels
        other = X if Y is None else _rows("Y", Y)
        if other.shape[1] != X.shape[1]:
            raise AuguryError(
                f"X and Y must have as many columns, got {X.shape[1]} and {other.shape[1]}"
            )
        squared = cdist(X, other, "sqeuclidean")
        weights = mixture_weights(self.beta, X.shape[1])
        orders = np.arange(1, len(weights) + 1)
        value, by_sigma, by_beta = (np.zeros_like(squared) for _ in range(3))
        mean = weights @ orders
        for i, weight in zip(orders, weights, strict=True):
            scaled = squared / (i * self.sigma**2)
            term = weight * np.exp(scaled / -2)
            value += term
            if eval_gradient:
                by_sigma += term * scaled
                by_beta += term * ((i - mean) / (1 + self.beta))
        if not eval_gradient:
            return value
        named = {"beta": by_beta, "sigma": by_sigma}  # in the order of self.theta: by name
        free = [named[h.name] for h in self.hyperparameters if not h.fixed]
        return value, np.stack(free, axis=-1) if free else np.empty((*value.shape, 0))

    def diag(self, X: Any) -> Any:
        return np.ones(len(X))

    def __repr__(self) -> str:
        return f"JitterKernel(sigma={self.sigma:.3g}, beta={self.beta:.3g})"


class JitterFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random features z with z(x)·z(y) ≈ the jitter kernel: cosines at random frequencies.

    The kernel is a mixture of Gaussians, so its spectrum is one too: draw i by w_i, then the
    frequency from N(0, I/(iσ²)). The error falls as 1/√n_components.

    Parameters
    ----------
    sigma, beta
        As in `JitterKernel`.
    n_components
        The number of features.
    random_state
        As in scikit-learn.
    """

    def __init__(
        self,
        sigma: float = 1.0,
        beta: float = 1.0,
        n_components: int = 100,
        random_state: Any = None,
    ) -> None:
        self.sigma, self.beta = sigma, beta
        self.n_components, self.random_state = n_components, random_state

    def fit(self, X: Any, y: Any = None) -> JitterFeatures:
        """Draw the frequencies for X's number of columns."""
        with one_line():
            X = validate_data(self, X)
        _check(self.sigma, self.beta)
        as_whole("n_components", self.n_components, 1)
        with one_line():
            rng = check_random_state(self.random_state)
        weights = mixture_weights(self.beta, X.shape[1])
        order = rng.choice(len(weights), self.n_components, p=weights) + 1
        frequencies = rng.normal(size=(X.shape[1], self.n_components))
        self.frequencies_ = frequencies / (self.sigma * np.sqrt(order))
        self.phases_ = rng.uniform(0, 2 * math.pi, self.n_components)
        self._n_features_out = self.n_components
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features, ``(n, n_components)``."""
        check_is_fitted(self)
        with one_line():
            X = np.asarray(validate_data(self, X, reset=False))
        return np.cos(X @ self.frequencies_ + self.phases_) * math.sqrt(2 / self.n_components)


def _rows(name: str, given: Any) -> np.ndarray:
    found = np.atleast_2d(as_numbers(name, given))
    if found.ndim != 2:
        raise AuguryError(f"{name} must be rows of numbers, got shape {found.shape}")
    return found


def mixture_weights(beta: float, d: int) -> np.ndarray:
    """Return w_i ∝ (β/(1+β))^i i^(−d/2), i = 1, 2, …, which sum to 1."""
    weights = _weights(beta) * np.arange(1, len(_weights(beta)) + 1) ** (-d / 2)
    return weights / weights.sum()


def _weights(beta: float) -> np.ndarray:
    """Return (β/(1+β))^i for i = 1, 2, … until what is left is below rounding."""
    ratio = beta / (1 + beta)
    return ratio ** np.arange(1, 2 + math.ceil(math.log(1e-16) / math.log(ratio)))


def _check(sigma: float, beta: float) -> None:
    for name, value in (("sigma", sigma), ("beta", beta)):
        as_number(name, value, positive=True)
