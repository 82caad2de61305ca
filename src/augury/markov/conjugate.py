"""Conjugate gradients for a reversible chain, in single precision with refinement in double."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from augury.markov.checks import Csr

if TYPE_CHECKING:
    from augury.markov.chain import FiniteChain

_SINGLE = 1e-4
"""How far one round in single precision brings the residual down, well above its rounding."""

Undo = Callable[[np.ndarray], np.ndarray]
"""A preconditioner: an approximate inverse, applied."""

Solver = Callable[[np.ndarray, np.ndarray | None], tuple[np.ndarray, int, float]]
"""From a right-hand side and a first guess to the solution, the products taken and the error."""


def conjugate_gradients(chain: FiniteChain, tol: float, undo: Undo | None = None) -> Solver:
    """Return a solver of x((1+β)I − A) = c for one c, to a relative ℓ1 error of `tol`.

    In u = xΠ₀⁻¹ the system is ((1+β)I − A)u = Π₀⁻¹c, and its matrix M is self-adjoint in the inner
    product ⟨u, v⟩ = Σ π₀ u v, with eigenvalues from 1 to 1 + 2β: so the products with A that are
    needed grow like √β. Where π₀ is uniform the rounds run in single precision, which halves the
    memory moved, and the residual of each round is taken anew in double. The preconditioner is
    Jacobi's, the diagonal of M, unless `undo` is given: the inverse of a matrix near M.
    """
    chain.reversibility.require("conjugate gradients")
    pi0 = None if chain.reversibility.uniform else chain.reversibility.pi0
    a, shift = chain.A, 1 + chain.beta
    diagonal = shift - a.diagonal()

    def at(dtype: type[np.floating]) -> tuple[Csr, Undo | None]:
        same = sp.csr_array((a.data.astype(dtype, copy=False), a.indices, a.indptr), shape=a.shape)
        if undo is not None or np.ptp(diagonal) == 0:  # a constant diagonal changes nothing
            return same, undo
        inverse = (1 / diagonal).astype(dtype)
        return same, lambda r: inverse * r

    # weights may need the range of double, and so may a chain that hardly ever restarts
    precisions = [at(np.float64)]
    if pi0 is None and undo is None:
        precisions.insert(0, at(np.float32))

    def one(c: np.ndarray, start: np.ndarray | None) -> tuple[np.ndarray, int, float]:
        b = c if pi0 is None else c / pi0
        size, products, left = _mass(b, pi0) or 1.0, 0, list(precisions)
        u, residual, error = np.zeros_like(b), b, 1.0
        if start is not None:
            u = start / (1 if pi0 is None else pi0)
            residual = b - (shift * u - a @ u)
            error = _mass(residual, pi0) / size
        while error > tol and left:
            matrix, precondition = left[0]
            enough = tol / error / 2
            if matrix.dtype == np.float32:
                enough = max(enough, _SINGLE)
            scale = error * size
            goal = (residual / scale).astype(matrix.dtype)
            change, steps = _round(matrix, shift, precondition, pi0, goal, enough)
            products += steps + 1
            closer = u + scale * change.astype(np.float64)
            rest = b - (shift * closer - a @ closer)
            after = _mass(rest, pi0) / size
            if not after < error / 2:  # rounding has the last word: on to double, if not there yet
                left.pop(0)
            if after < error:
                u, residual, error = closer, rest, after
        return (u if pi0 is None else u * pi0), products, float(error)

    return one


def _round(
    a: Csr,
    shift: float,
    undo: Undo | None,
    pi0: np.ndarray | None,
    b: np.ndarray,
    tol: float,
) -> tuple[np.ndarray, int]:
    """Run conjugate gradients on (shift·I − A)u = b until its ℓ1 residual has shrunk by `tol`."""
    target, spare = tol * _mass(b, pi0), np.empty_like(b)
    u, r = np.zeros_like(b), b
    z = r if undo is None else undo(r)
    p, rz = z.copy(), _inner(r, z, pi0)
    most = 20 + int(4 * np.sqrt(2 * shift) * np.log(1 / tol))  # several times what theory asks
    steps = 0
    while steps < most and rz > 0:
        q = a @ p  # and, in place, q = shift·p − Ap
        np.multiply(p, shift, out=spare)
        np.subtract(spare, q, out=q)
        step = rz / _inner(p, q, pi0)
        u += np.multiply(p, step, out=spare)
        r -= np.multiply(q, step, out=spare)
        steps += 1
        if _mass(r, pi0, spare) <= target:
            break
        z = r if undo is None else undo(r)
        before, rz = rz, _inner(r, z, pi0)
        p *= rz / before
        p += z
    return u, steps


def _inner(x: np.ndarray, y: np.ndarray, pi0: np.ndarray | None):
    return x @ y if pi0 is None else x @ (pi0 * y)


def _mass(x: np.ndarray, pi0: np.ndarray | None, out: np.ndarray | None = None) -> float:
    """Return the ℓ1 norm of the measure whose density against π₀ (or counting) is x."""
    size = np.abs(x, out=out)
    return float(size.sum() if pi0 is None else size @ pi0)
