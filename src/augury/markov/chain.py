"""The Markov chain of augmentations with restarts on a finite state space (Definition 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, SuperLU, splu

from augury._base.errors import AuguryError
from augury._base.given import as_list, as_whole, check_kind, is_one_of
from augury._base.text import shown
from augury.augmentations.chain import check_rates
from augury.markov.checks import Csr, Reversibility, restart_law, reversibility, stochastic
from augury.markov.solve import Method, Solution, solve
from augury.markov.symmetrise import SYMMETRISERS

if TYPE_CHECKING:
    from augury.markov.kernel import ChainKernel


@dataclass(frozen=True)
class Checks:
    """What the theorem needs of a chain, as found; its text is one line each."""

    states: int
    augmentations: int
    row_error: float
    """The largest ``|row sum − 1|`` of the A_j."""
    violation: float
    """The worst violation of detailed balance: see `Reversibility`."""
    reversible: bool
    smallest: float
    """min π₀: over 0, so K is positive definite; its eigenvalues are at least min π₀/(1+2β)."""

    def __str__(self) -> str:
        kernel = "a kernel follows" if self.reversible else "no kernel follows: symmetrise"
        return (
            f"rows: {self.augmentations} transition matrices on {self.states:,} states, sums off 1 "
            f"by {self.row_error:.1e} at most\n"
            f"reversibility: worst violation {self.violation:.1e}; {kernel}\n"
            f"positivity: the smallest weight of the common stationary law is {self.smallest:.1e}"
        )


class FiniteChain:
    """A chain that moves by stochastic matrices A_j at rates β_j and restarts by weights γ_i.

    Its transition matrix is R = (A + 1ρᵀ)/(1+β), with A = Σ β_j A_j, β = Σ β_j (Proposition 1).

    Parameters
    ----------
    matrices
        The A_j: N × N with rows that sum to 1, sparse or dense. CSR matrices are not copied.
    rates
        The β_j, one for each matrix, against a total restart rate of 1.
    restart
        A weight for each state, 0 for those that are not examples. Only their ratios matter: they
        are divided by their sum, so that Σ γ_i = 1 as in the paper.

    Examples
    --------
    >>> flip = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    >>> turn = [[0.5, 0, 0.5], [0, 1, 0], [0.5, 0, 0.5]]
    >>> chain = FiniteChain([flip, turn], rates=[1, 2], restart=[1, 0, 0])
    >>> chain.stationary().round(3)
    array([0.5 , 0.25, 0.25])
    """

    def __init__(self, matrices: Sequence[Any], rates: Sequence[float], restart: Any) -> None:
        matrices = as_list("matrices", matrices)
        self.rates = _floats(rates)
        check_rates(self.rates, len(matrices))
        self.matrices = stochastic(matrices)
        self.states = self.matrices[0].shape[0]
        self.rho = restart_law(restart, self.states)
        self.beta = math.fsum(self.rates)

    def with_rates(self, rates: Sequence[float]) -> FiniteChain:
        """Return the same chain at other rates; nothing is checked or searched for again."""
        given = _floats(rates)
        check_rates(given, len(self.matrices))
        other = object.__new__(FiniteChain)
        other.matrices, other.states, other.rho = self.matrices, self.states, self.rho
        other.rates = given
        other.beta = math.fsum(other.rates)
        if "reversibility" in self.__dict__:
            other.__dict__["reversibility"] = self.reversibility
        return other

    @cached_property
    def A(self) -> Csr:
        """A = Σ β_j A_j."""
        moving: list[Csr] = [
            sp.csr_array((rate * a.data, a.indices, a.indptr), shape=a.shape)
            for rate, a in zip(self.rates, self.matrices, strict=True)
            if rate
        ]
        while len(moving) > 1:  # in pairs, so that no entry is copied more often than need be
            moving = [sum(moving[k + 1 : k + 2], start=moving[k]) for k in range(0, len(moving), 2)]
        return moving[0]

    @cached_property
    def R(self) -> LinearOperator:
        """R = (A + 1ρᵀ)/(1+β) as an operator: its restarts would fill a sparse matrix."""

        def right(x: np.ndarray) -> np.ndarray:
            return (self.A @ x + self.rho @ x) / (1 + self.beta)

        def left(x: np.ndarray) -> np.ndarray:
            return (self.step(x) + np.multiply.outer(self.rho, x.sum(0))) / (1 + self.beta)

        shape = (self.states, self.states)
        make: Any = LinearOperator  # its annotations are those of its subclasses
        return make(
            shape=shape, matvec=right, rmatvec=left, matmat=right, rmatmat=left, dtype=np.float64
        )

    @cached_property
    def reversibility(self) -> Reversibility:
        """The law π₀ that comes nearest to reversing all A_j, with the worst violation."""
        return reversibility(self.matrices)

    @property
    def is_reversible(self) -> bool:
        """Whether all A_j are reversible with one stationary law, as the kernel needs."""
        return self.reversibility.holds

    @cached_property
    def factors(self) -> SuperLU:
        """Sparse factors of (1+β)I − A, made once; for chains whose factors do not fill up."""
        system = (1 + self.beta) * sp.eye_array(self.states, format="csc") - self.A.tocsc()
        # its rows are diagonally dominant, so no pivoting is needed
        try:
            return splu(
                system,
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:  # rounding has made a row of the system zero
            raise AuguryError(
                f"the chain's rates, β = {self.beta:g}, are too large to compute with; use smaller "
                "rates"
            ) from error

    def checks(self) -> Checks:
        """Report what the theory needs: stochastic rows, reversibility, positivity."""
        ones = np.ones(self.states)
        return Checks(
            states=self.states,
            augmentations=len(self.matrices),
            row_error=max(float(np.abs(a @ ones - 1).max()) for a in self.matrices),
            violation=self.reversibility.violation,
            reversible=self.is_reversible,
            smallest=float(self.reversibility.pi0.min()),
        )

    def step(self, x: np.ndarray) -> np.ndarray:
        """Return xA for measures x, ``(N,)`` or as columns ``(N, k)``."""
        return self.A.T @ x

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Return x((1+β)I − A) for measures x, ``(N,)`` or as columns ``(N, k)``."""
        return (1 + self.beta) * x - self.step(x)

    def solve(
        self,
        c: np.ndarray,
        *,
        method: Method = "auto",
        tol: float = 1e-10,
        start: np.ndarray | None = None,
        workers: int | None = None,
    ) -> Solution:
        """Solve x((1+β)I − A) = c: see `augury.markov.solve.solve`."""
        return solve(self, c, method=method, tol=tol, start=start, workers=workers)

    def stationary(self, *, method: Method = "auto", tol: float = 1e-10) -> np.ndarray:
        """Return π = ρᵀ((1+β)I − A)⁻¹ (Lemma 1), to `tol` in total variation."""
        return self.solve(self.rho, method=method, tol=tol).x

    def distribution(self, n: int, start: Any = None) -> np.ndarray:
        """Return π_n, the law after n steps from `start` (default: ρ); n products with A."""
        law = self.rho if start is None else restart_law(start, self.states)
        n = as_whole("n", n, 0)
        for _ in range(n):
            law = (self.step(law) + self.rho) / (1 + self.beta)
        return law

    def mixing_bound(self, n: int) -> float:
        """Return (β/(1+β))^n, which bounds the total variation between π_n and π from any start.

        π_n − π = (π_0 − π)(A/(1+β))^n, for the restarts cancel; and A/β, being stochastic, does
        not lengthen a row vector in ℓ1. The ℓ2 bound printed in the paper needs more: that A/β
        does not lengthen one in ℓ2, which fails for lossy augmentations.
        """
        return (self.beta / (1 + self.beta)) ** as_whole("n", n, 0)

    def kernel(self, *, method: Method = "auto", tol: float = 1e-10) -> ChainKernel:
        """Return K with π = αᵀK (Lemma 2), as an operator; the chain must be reversible."""
        from augury.markov.kernel import ChainKernel

        return ChainKernel(self, method=method, tol=tol)

    def symmetrised(self, how: str = "metropolis") -> FiniteChain:
        """Return a chain with each A_j made symmetric, by ``"metropolis"`` or ``"footnote"``."""
        if not is_one_of(how, SYMMETRISERS):
            raise AuguryError(f"how={shown(how)}: expected one of {', '.join(SYMMETRISERS)}")
        matrices = [SYMMETRISERS[how](a) for a in self.matrices]
        return FiniteChain(matrices, self.rates, self.rho)

    def __repr__(self) -> str:
        rates = ", ".join(f"{rate:g}" for rate in self.rates)
        return f"FiniteChain({self.states:,} states, rates {rates})"


def check_chain(chain: Any) -> None:
    """Raise unless this is a finite chain."""
    check_kind("chain", chain, FiniteChain, "a FiniteChain")


def _floats(rates: Any) -> tuple[float, ...]:
    """Return rates as floats, whatever their signs: `check_rates` says what is wrong with them."""
    given = as_list("rates", rates)
    return tuple(float(rate) if isinstance(rate, Real) else rate for rate in given)
