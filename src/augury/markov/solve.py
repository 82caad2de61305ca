"""Measures x with x((1+β)I − A) = c, by three routes, each with an error bound that holds.

Every question about a chain is of this form: the stationary law has c = ρ (Lemma 1), and a column
of the kernel has c = π₀(i) e_i. Since ((1+β)I − A)⁻¹ is a stochastic matrix, it does not lengthen
a row vector in ℓ1: ‖x − x*‖₁ ≤ ‖c − x((1+β)I − A)‖₁. So the residual, which can be measured,
bounds the error, which cannot, whatever the route.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from augury._base.errors import AuguryError
from augury._base.given import as_number, as_numbers, as_whole, is_one_of
from augury._base.text import shown
from augury.markov.conjugate import Solver, conjugate_gradients

if TYPE_CHECKING:
    from augury.markov.chain import FiniteChain

Method = Literal["auto", "cg", "series", "direct"]

SMALL = 1_000
"""Up to so many states the sparse factors cost less than iterating."""


_ROUNDING = 1e-12
"""No more than this is to be had of an iteration in double precision."""
_LOST = 1e-6
"""A larger error of the direct route is that of a system which rounding has made another one."""


class Solution(NamedTuple):
    """What a solve gave.

    Attributes
    ----------
    x
        The measures, of the shape of the right-hand sides.
    error
        A bound on ‖x − x*‖₁ / ‖c‖₁, where x* is the true solution; the worst column's.
    products
        How many products with A the longest column took; 0 for the direct route.
    method
        ``"cg"``, ``"series"`` or ``"direct"``.
    """

    x: np.ndarray
    error: float
    products: int
    method: str


def solve(
    chain: FiniteChain,
    c: np.ndarray,
    *,
    method: Method = "auto",
    tol: float = 1e-10,
    start: np.ndarray | None = None,
    workers: int | None = None,
) -> Solution:
    """Solve x((1+β)I − A) = c for each column c, to a relative ℓ1 error of `tol`.

    Parameters
    ----------
    chain
        The finite chain.
    c
        ``(N,)`` or ``(N, k)``: k right-hand sides, each a column.
    method
        ``"cg"``: conjugate gradients with Jacobi's preconditioner, for reversible chains; about
        ½√(1+2β) ln(2/tol) products. ``"series"``: the power series Σ cAⁱ/(1+β)^(i+1), for all
        chains; at most (1+β) ln(1/tol) products. ``"direct"``: sparse factors, kept for later
        calls. ``"auto"``: direct up to 1,000 states, else cg where the chain is reversible, else
        the series.
    tol
        The error ‖x − x*‖₁ / ‖c‖₁ that will do.
    start
        A first guess of the solution, of the shape of `c`; used by ``"cg"``.
    workers
        Threads, each with a column of its own; by default one per core. The result is the same.
    """
    if not is_one_of(method, get_args(Method)):
        raise AuguryError(f"method={shown(method)}: expected one of {', '.join(get_args(Method))}")
    c = as_columns("c", c, chain.states)
    tol = as_number("tol", tol, positive=True)
    workers = workers if workers is None else as_whole("workers", workers, 1)
    start = start if start is None else as_numbers("start", start, c.shape)
    if method == "auto":
        small = chain.states <= SMALL
        method = "direct" if small else "cg" if chain.is_reversible else "series"
    columns = c.reshape(chain.states, -1)
    if method == "direct":
        x = chain.factors.solve(columns, trans="T")
        return _checked(Solution(x.reshape(c.shape), residual(chain, columns, x), 0, method), chain)
    one = conjugate_gradients(chain, tol) if method == "cg" else _power_series(chain, tol)
    guess = np.zeros((chain.states, 0)) if start is None else np.reshape(start, columns.shape)
    x, products, error = np.empty_like(columns), 0, 0.0

    def column(k: int) -> tuple[int, float]:
        # A single column's vectors stay in the cache, which a block of columns would not.
        x[:, k], steps, bound = one(
            np.ascontiguousarray(columns[:, k]), None if start is None else guess[:, k]
        )
        return steps, bound

    with ThreadPoolExecutor(workers or _cores()) as pool:
        for steps, bound in pool.map(column, range(columns.shape[1])):
            products, error = max(products, steps), max(error, bound)
    if not error <= max(tol, _ROUNDING):
        raise AuguryError(
            f"{method} stopped at a relative error of {error:.1e}, but {tol:.1e} was requested "
            f"(β = {chain.beta:g}); use method='direct' or a larger tol"
        )
    return Solution(x.reshape(c.shape), error, products, method)


def _checked(found: Solution, chain: FiniteChain) -> Solution:
    """Return what the direct route gave; raise if rounding has left nothing of it."""
    if not found.error <= _LOST:
        raise AuguryError(
            f"the chain's rates, β = {chain.beta:g}, are too large to compute with: the direct "
            f"solution has a relative error of {found.error:.1e}; use smaller rates"
        )
    return found


def as_columns(name: str, x: Any, states: int) -> np.ndarray:
    """Return measures as an array ``(N,)`` or ``(N, k)``; raise if they are not on these states."""
    found = as_numbers(name, x)
    if found.shape[:1] != (states,) or found.ndim > 2:
        raise AuguryError(f"expected {states} rows, one per state; got shape {found.shape}")
    return found


def residual(chain: FiniteChain, c: np.ndarray, x: np.ndarray) -> float:
    """Return ‖c − x((1+β)I − A)‖₁ / ‖c‖₁, which bounds the error of x; the worst column's."""
    size = np.abs(c).sum(0)
    left = np.abs(c - chain.forward(x)).sum(0)
    return float(np.max(left / np.where(size > 0, size, 1), initial=0))


def _power_series(chain: FiniteChain, tol: float) -> Solver:
    """Sum the power series; after m terms the error is at most (β/(1+β))^m ‖c‖₁.

    Each sweep x ← (c + xA)/(1+β) adds a term. The residual of the new x is what the next sweep
    would change, which is at most β times what this one changed: often less than the bound.
    """
    ratio = chain.beta / (1 + chain.beta)
    if ratio == 1:
        raise AuguryError(f"β = {chain.beta:g} is too large for the series; use smaller rates")
    most = max(1, math.ceil(math.log(tol) / math.log(ratio)))

    def one(c: np.ndarray, start: np.ndarray | None) -> tuple[np.ndarray, int, float]:
        size = np.abs(c).sum() or 1.0
        x, error = c / (1 + chain.beta), ratio
        for m in range(1, most + 1):
            before, x = x, (c + chain.step(x)) / (1 + chain.beta)
            change = np.abs(x - before).sum()
            error = min(ratio ** (m + 1), chain.beta * change / size)
            if error <= tol:
                return x, m, float(error)
        return x, most, float(error)

    return one


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
