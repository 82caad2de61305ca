"""Slow, obvious twins of the objectives, written from the paper; nothing is imported from augury.

All formulas are analytic, so that a complex step gives their gradients to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def quadratic(output: np.ndarray, y: np.ndarray) -> complex:
    return sum((output[k] - y[k]) ** 2 for k in range(len(output)))


def logistic(output: np.ndarray, y: float) -> complex:
    return np.log(1 + np.exp(-y * output[0]))


def multinomial(output: np.ndarray, y: int) -> complex:
    return -(output[y] - np.log(sum(np.exp(value) for value in output)))


def quadratic_hessian(output: np.ndarray) -> np.ndarray:
    return 2 * np.eye(len(output))


def logistic_hessian(output: np.ndarray) -> np.ndarray:
    """l'' = ¼ sech²(x / 2) (Appendix D)."""
    return np.array([[0.25 / np.cosh(output[0] / 2) ** 2]])


def multinomial_hessian(output: np.ndarray) -> np.ndarray:
    """diag(p) − ppᵀ (Appendix D)."""
    p = np.exp(output) / sum(np.exp(output))
    return np.diag(p) - np.outer(p, p)


LOSSES = {
    "quadratic": (quadratic, quadratic_hessian),
    "logistic": (logistic, logistic_hessian),
    "multinomial": (multinomial, multinomial_hessian),
}


def average(features: np.ndarray, weights: np.ndarray, i: int) -> np.ndarray:
    """ψ(x_i) = E φ(t), view by view; features are (n, b, d)."""
    return sum(weights[j] * features[j, i] for j in range(len(weights)))


def f(w, features, weights, origin, y, name):
    """(1/b) Σ l(wᵀφ(x_i); y_i)."""
    loss, _ = LOSSES[name]
    return sum(loss(w @ origin[i], y[i]) for i in range(len(y))) / len(y)


def g(w, features, weights, origin, y, name):
    """(1/b) Σ E l(wᵀφ(t_i); y_i), equation (4)."""
    loss, _ = LOSSES[name]
    total = 0
    for i in range(len(y)):
        for j in range(len(weights)):
            total = total + weights[j] * loss(w @ features[j, i], y[i])
    return total / len(y)


def g_hat(w, features, weights, origin, y, name):
    """(1/b) Σ l(wᵀψ(x_i); y_i), equation (5)."""
    loss, _ = LOSSES[name]
    total = 0
    for i in range(len(y)):
        total = total + loss(w @ average(features, weights, i), y[i])
    return total / len(y)


def variance(w, features, weights, origin, y, name):
    """(1/2b) Σ E[(wᵀΔ)ᵀ l''(wᵀψ) (wᵀΔ)], of equation (6): one half of the curvature."""
    _, hessian = LOSSES[name]
    total = 0
    for i in range(len(y)):
        psi = average(features, weights, i)
        for j in range(len(weights)):
            delta = w @ (features[j, i] - psi)
            total = total + weights[j] * delta @ hessian(w @ psi) @ delta / 2
    return total / len(y)


def g_tilde(*args):
    return g_hat(*args) + variance(*args)


def second_only(*args):
    """f + g̃ − ĝ."""
    return f(*args) + variance(*args)


def complex_step(fn: Callable[[np.ndarray], complex], w: np.ndarray) -> np.ndarray:
    """The gradient, entry by entry: Im fn(w + ih) / h, exact to rounding for analytic fn."""
    out = np.zeros_like(w)
    for index in np.ndindex(*w.shape):
        moved = w.astype(complex)
        moved[index] += 1e-30j
        out[index] = np.imag(fn(moved)) / 1e-30
    return out


def ridge(features, weights, y, penalty):
    """(E[φφᵀ] + λI)⁻¹ E[ψyᵀ], term by term; features (n, N, d), y (N, C)."""
    n, examples, d = features.shape
    second, cross = np.zeros((d, d)), np.zeros((d, y.shape[1]))
    for i in range(examples):
        for j in range(n):
            second += weights[j] * np.outer(features[j, i], features[j, i]) / examples
            cross += weights[j] * np.outer(features[j, i], y[i]) / examples
    return np.linalg.solve(second + penalty * np.eye(d), cross)


def gcv(features, weights, y, penalty):
    """(1/N)‖Y − SY‖² / (1 − tr S / N)², S the matrix that takes Y to the outputs on ψ."""
    examples = features.shape[1]
    psi = np.stack([average(features, weights, i) for i in range(examples)])
    columns = [ridge(features, weights, np.eye(examples)[:, [i]], penalty) for i in range(examples)]
    smoother = psi @ np.concatenate(columns, axis=1)
    residual = y - smoother @ y
    return (residual**2).sum() / examples / (1 - np.trace(smoother) / examples) ** 2
