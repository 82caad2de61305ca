"""Slow twins of the chain's formulas: dense linear algebra, written from the paper."""

from __future__ import annotations

import itertools
import math

import numpy as np


def weighted(matrices, rates):
    """A = Σ β_j A_j and β = Σ β_j (Lemma 1)."""
    return sum(b * np.asarray(a) for b, a in zip(rates, matrices, strict=True)), sum(rates)


def transition(matrices, rates, rho):
    """R = (Σ β_j A_j + Σ γ_i 1 e_{z_i}ᵀ) / (1 + Σ β_j) (Proposition 1)."""
    a, beta = weighted(matrices, rates)
    return (a + np.outer(np.ones(len(rho)), rho)) / (1 + beta)


def stationary(matrices, rates, rho):
    """π = ρᵀ (I(β+1) − A)⁻¹ (Lemma 1)."""
    a, beta = weighted(matrices, rates)
    return rho @ np.linalg.inv(np.eye(len(rho)) * (beta + 1) - a)


def law_after(n, matrices, rates, rho):
    """π_n = ρᵀ/(β+1) (Aⁿ/(β+1)^(n−1) + Σ_{i<n} (A/(β+1))^i) (Appendix A.2)."""
    a, beta = weighted(matrices, rates)
    power = np.linalg.matrix_power
    total = power(a, n) / (beta + 1) ** (n - 1)
    for i in range(n):
        total = total + power(a / (beta + 1), i)
    return rho @ total / (beta + 1)


def kernel(matrices, rates, pi0):
    """K = ((β+1)Π₀⁻¹ − AΠ₀⁻¹)⁻¹ (Lemma 2)."""
    a, beta = weighted(matrices, rates)
    return np.linalg.inv((beta + 1) * np.diag(1 / pi0) - a @ np.diag(1 / pi0))


def printed_l2_bound(n, beta):
    """(β/(β+1))ⁿ (1 + 1/(β+1)²), the bound as printed in Appendix A.2, which does not hold."""
    return (beta / (beta + 1)) ** n * (1 + 1 / (beta + 1) ** 2)


def total_variation(p, q):
    """½ ‖p − q‖₁."""
    return np.abs(p - q).sum() / 2


def random_stochastic(rng, n):
    """A random transition matrix with zeros, not reversible."""
    a = rng.random((n, n)) * (rng.random((n, n)) < 0.5) + 1e-3 * np.eye(n)
    return a / a.sum(1, keepdims=True)


def random_reversible(rng, pi0):
    """A random transition matrix in detailed balance with π₀: symmetric flows, the rest stays."""
    n = len(pi0)
    flow = rng.random((n, n)) * (rng.random((n, n)) < 0.6)
    flow = np.triu(flow, 1) + np.triu(flow, 1).T
    flow *= rng.uniform(0.2, 1) * (pi0 / np.maximum(flow.sum(1), 1e-12)).min()
    a = flow / pi0[:, None]
    return a + np.diag(1 - a.sum(1))


def jitter_on_grid(sigma, beta, d, step, side):
    """The kernel of jitter on a periodic grid: ((1+β)I − βA)⁻¹, its atom taken off, as a density.

    Gives the squared distances from one grid point and the density of the first row.
    """
    axis = np.arange(side)
    axis = np.minimum(axis, side - axis) * step
    steps = np.stack([g.ravel() for g in np.meshgrid(*[axis] * d, indexing="ij")])
    points = np.array(list(itertools.product(range(side), repeat=d)))
    near = (steps**2).sum(0)
    jump = np.exp(-near / (2 * sigma**2)) * (2 * math.pi * sigma**2) ** (-d / 2) * step**d
    away = (points[None, :, :] - points[:, None, :]) % side
    number = np.ravel_multi_index(tuple(np.moveaxis(away, -1, 0)), (side,) * d)
    a = jump[number]
    k = np.linalg.inv((1 + beta) * np.eye(len(points)) - beta * a)
    row = k[0] - np.eye(len(points))[0] / (1 + beta)
    return near, row / step**d
