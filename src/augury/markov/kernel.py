"""The kernel that a chain of augmentations induces (Lemma 2 and the theorem)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from augury._base.errors import AuguryError
from augury._base.text import kind_of
from augury.markov.checks import as_states
from augury.markov.solve import Method, Solution, as_columns

if TYPE_CHECKING:
    from augury.markov.chain import FiniteChain


class ChainKernel(LinearOperator):
    """K = ((1+β)Π₀⁻¹ − AΠ₀⁻¹)⁻¹ = Π₀((1+β)I − A)⁻¹, by its products; never inverted.

    K is symmetric, positive definite and non-negative, and π = αᵀK with α = Π₀⁻¹ρ. Row i of K is
    π₀(i) times the stationary law of a chain that restarts at state i alone.

    Parameters
    ----------
    chain
        A reversible chain.
    method, tol, workers
        How its systems are solved, and how well: see `augury.markov.solve.solve`.

    Examples
    --------
    >>> import numpy as np
    >>> from augury.markov import FiniteChain
    >>> flip = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    >>> chain = FiniteChain([flip], rates=[1], restart=[1, 0, 1])
    >>> K = chain.kernel()
    >>> K.columns([0]).ravel().round(4)
    array([0.2222, 0.1111, 0.    ])
    >>> np.allclose(K @ K.alpha, chain.stationary())
    True
    """

    def __init__(
        self,
        chain: FiniteChain,
        *,
        method: Method = "auto",
        tol: float = 1e-10,
        workers: int | None = None,
    ) -> None:
        if not hasattr(chain, "reversibility"):  # not by its class, which imports this module
            raise AuguryError(f"chain must be a FiniteChain, got {kind_of(chain)}")
        chain.reversibility.require("a kernel")
        super().__init__(np.dtype(np.float64), (chain.states, chain.states))
        self.method: Method = method
        self.chain, self.tol, self.workers = chain, tol, workers

    @property
    def pi0(self) -> np.ndarray:
        """The common stationary law of the augmentations."""
        return self.chain.reversibility.pi0

    @property
    def alpha(self) -> np.ndarray:
        """α = Π₀⁻¹ρ, which is zero but at the examples."""
        return self.chain.rho / self.pi0

    def solve(self, b: Any, start: np.ndarray | None = None) -> Solution:
        """Return Kb with a bound on its error in ℓ1, relative to Π₀b; `start` is a first guess."""
        b = as_columns("b", b, self.shape[0])
        weights = self.pi0 if b.ndim == 1 else self.pi0[:, None]
        return self.chain.solve(
            weights * b, method=self.method, tol=self.tol, start=start, workers=self.workers
        )

    def columns(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the columns of K at these states, ``(N, k)``: one solve each."""
        return self.solve(unit_columns(indices, self.shape[0])).x

    def inverse_times(self, x: np.ndarray) -> np.ndarray:
        """Return K⁻¹x: one product with A."""
        x = as_columns("x", x, self.shape[0])
        weights = self.pi0 if x.ndim == 1 else self.pi0[:, None]
        return self.chain.forward(x) / weights

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        return self.solve(x).x

    def _matmat(self, X: np.ndarray) -> np.ndarray:
        return self.solve(X).x

    def _adjoint(self) -> ChainKernel:  # type: ignore[override]  # K is its own transpose
        return self


def unit_columns(indices: Sequence[int] | np.ndarray, states: int) -> np.ndarray:
    """Return the columns of the identity at these states."""
    index = as_states("indices", indices, states)
    if index.ndim != 1 or not len(index):
        raise AuguryError(f"indices must be a list of states, got shape {index.shape}")
    columns = np.zeros((states, len(index)))
    columns[index, np.arange(len(index))] = 1
    return columns
