"""A kernel's products after its augmentations have changed, from the old kernel (Appendix B.1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

from augury._base.errors import AuguryError
from augury._base.given import as_number, as_whole, check_kind, is_one_of
from augury._base.text import shown
from augury.markov.chain import FiniteChain
from augury.markov.checks import Csr
from augury.markov.conjugate import conjugate_gradients
from augury.markov.kernel import ChainKernel
from augury.markov.solve import SMALL, Solution, as_columns, residual

Route = Literal["auto", "series", "woodbury", "cg"]

_FEW = 32
"""Up to so many moved states the change is of low rank, and Woodbury's formula is cheap."""


class UpdatedKernel(ChainKernel):
    """The kernel of a changed chain, whose products come from those of the old kernel.

    With M = (1+β)I − A and the change E = M' − M = Σ_j δ_j (I − A_j), δ_j the change of rate j,
    the new measures are x' = cM'⁻¹ where the old ones were x = cM⁻¹.

    Parameters
    ----------
    old
        The kernel before.
    chain
        The chain after, on the same states.
    change
        E, sparse.
    bound
        An upper bound on the spectral radius of EM⁻¹.
    route
        ``"series"``: x' = Σ_n x(−EM⁻¹)^n, the paper's; it converges if the spectral radius of
        EM⁻¹ is below 1, which is checked. ``"woodbury"``: exact, one old solve for each state
        that the change touches. ``"cg"``: conjugate gradients from the old solution, with the old
        factors as preconditioner where there are any; always converges. ``"auto"``: woodbury
        where few states are touched; the series where its radius is ½ or less and the old kernel
        has factors; else cg.
    """

    def __init__(
        self,
        old: ChainKernel,
        chain: FiniteChain,
        change: Csr,
        bound: float,
        route: Route = "auto",
    ) -> None:
        if not is_one_of(route, get_args(Route)):
            raise AuguryError(f"route={shown(route)}: expected one of {', '.join(get_args(Route))}")
        super().__init__(chain, method=old.method, tol=old.tol, workers=old.workers)
        self.old, self.change, self.bound = old, change, bound
        self.touched = np.flatnonzero(np.diff(change.indptr))
        self.factored = old.method == "direct" or (old.method == "auto" and chain.states <= SMALL)
        if route == "auto":
            few = len(self.touched) <= _FEW
            route = "woodbury" if few else "series" if self.factored and bound <= 0.5 else "cg"
        self.route = route

    @cached_property
    def radius(self) -> float:
        """The spectral radius of EM⁻¹: the series converges where it is below 1.

        E and M are self-adjoint for π₀, so it is the largest eigenvalue of a symmetric pencil.
        """
        root = np.sqrt(self.pi0)
        states = self.shape[0]

        def symmetric(matrix: Any) -> Any:
            return sp.diags_array(root) @ matrix @ sp.diags_array(1 / root)

        before = symmetric(
            (1 + self.old.chain.beta) * sp.eye_array(states, format="csr") - self.old.chain.A
        )
        change = symmetric(self.change)
        if states <= 200:
            inverse = np.linalg.solve(before.toarray(), change.toarray())
            return float(np.abs(np.linalg.eigvals(inverse)).max())

        def solve(x: np.ndarray) -> np.ndarray:
            return self.old.chain.solve(x.ravel() * root, method=self.old.method).x / root

        make: Any = LinearOperator  # its annotations are those of its subclasses
        undo = make(shape=(states, states), matvec=solve, dtype=np.float64)
        start = np.random.default_rng(0).normal(size=states)
        top: Any = eigsh  # its tolerance is annotated as a whole number
        largest = top(change, 1, M=before, Minv=undo, v0=start, tol=1e-4, return_eigenvectors=False)
        return float(np.abs(largest).max())

    def solve(self, b: Any, start: np.ndarray | None = None) -> Solution:
        """Return the new K times b; `start` is the old kernel's product, where it is known."""
        b = as_columns("b", b, self.shape[0])
        c = (self.pi0[:, None] * b.reshape(len(b), -1)).reshape(b.shape)
        old = self._before(c).x if start is None else np.asarray(start, dtype=np.float64)
        by = {"series": self._series, "woodbury": self._woodbury, "cg": self._cg}[self.route]
        x, products = by(c.reshape(len(c), -1), old.reshape(len(c), -1))
        x = x.reshape(c.shape)
        return Solution(x, residual(self.chain, c, x), products, self.route)

    def _before(self, c: np.ndarray) -> Solution:
        old = self.old
        return old.chain.solve(c, method=old.method, tol=old.tol / 10, workers=old.workers)

    def _series(self, c: np.ndarray, old: np.ndarray) -> tuple[np.ndarray, int]:
        if self.bound >= 1 and self.radius >= 1:
            raise AuguryError(
                f"the series for the changed kernel diverges: its radius is {self.radius:.3g}, but "
                "it must be below 1; use route='cg'"
            )
        x, term, terms = old.copy(), old, 0
        goal = self.tol * np.abs(c).sum(0)
        while True:
            moved = self.change.T @ term  # what is left over is minus this: the sum telescopes
            if (np.abs(moved).sum(0) <= goal).all():
                return x, terms
            term = -self._before(moved).x
            x, terms = x + term, terms + 1

    def _woodbury(self, c: np.ndarray, old: np.ndarray) -> tuple[np.ndarray, int]:
        # E = UVᵀ with U the identity's columns at the touched states and Vᵀ the rows of E there
        left, small = self._capacitance
        return old - left @ np.linalg.solve(small, old[self.touched]), 0

    @cached_property
    def _capacitance(self) -> tuple[np.ndarray, np.ndarray]:
        rows = self.change[self.touched].toarray()
        left = self._before(rows.T).x  # (VᵀM⁻¹)ᵀ
        return left, np.eye(len(self.touched)) + left[self.touched]

    def _cg(self, c: np.ndarray, old: np.ndarray) -> tuple[np.ndarray, int]:
        undo = self.old.chain.factors.solve if self.factored else None
        one = conjugate_gradients(self.chain, self.tol, undo)
        found = [one(np.ascontiguousarray(c[:, k]), old[:, k]) for k in range(c.shape[1])]
        return np.stack([x for x, _, _ in found], axis=1), max(steps for _, steps, _ in found)


def add_augmentation(
    kernel: ChainKernel, matrix: Any, rate: float, route: Route = "auto"
) -> UpdatedKernel:
    """Return the kernel after an augmentation has been added at a rate."""
    _check(kernel)
    old, rate = kernel.chain, as_number("rate", rate, 0)
    chain = FiniteChain([*old.matrices, matrix], [*old.rates, rate], old.rho)
    return _changed(kernel, chain, [*np.zeros(len(old.rates)), rate], route)


def remove_augmentation(kernel: ChainKernel, j: int, route: Route = "auto") -> UpdatedKernel:
    """Return the kernel after augmentation j has been removed."""
    _check(kernel)
    old, j = kernel.chain, as_whole("j", j)
    if not 0 <= j < len(old.rates):
        raise AuguryError(f"there is no augmentation {j}: expected 0 to {len(old.rates) - 1}")
    rates = [0.0 if k == j else rate for k, rate in enumerate(old.rates)]
    if not any(rates):
        raise AuguryError("the last augmentation of a chain cannot be removed; add another first")
    return change_rates(kernel, rates, route)


def change_rates(
    kernel: ChainKernel, rates: Sequence[float], route: Route = "auto"
) -> UpdatedKernel:
    """Return the kernel at other rates."""
    _check(kernel)
    chain = kernel.chain.with_rates(rates)
    return _changed(kernel, chain, np.subtract(chain.rates, kernel.chain.rates), route)


def _check(kernel: Any) -> None:
    check_kind("kernel", kernel, ChainKernel, "the kernel of a chain, such as chain.kernel()")


def _changed(kernel: ChainKernel, chain: FiniteChain, by: Any, route: Route) -> UpdatedKernel:
    identity = sp.eye_array(chain.states, format="csr")
    change: Csr = sp.csr_array((chain.states, chain.states))
    bound = 0.0
    before = [*kernel.chain.rates, 0.0]
    for k, (delta, a) in enumerate(zip(by, chain.matrices, strict=True)):
        if delta:
            change = change + delta * (identity - a)
            # M is at least I + β_j(I − A_j), and I − A_j has eigenvalues from 0 to 2
            bound += 2 * abs(delta) / (1 + 2 * before[k])
    change.eliminate_zeros()
    return UpdatedKernel(kernel, chain, sp.csr_array(change), bound, route)
