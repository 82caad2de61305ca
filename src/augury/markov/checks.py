"""What the theory needs of a chain, checked: stochastic rows and a common reversing law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from augury._base.errors import AuguryError
from augury._base.given import as_numbers, as_seed
from augury._base.text import kind_of

Csr = Any
"""A `scipy.sparse.csr_array`; SciPy's own annotations do not know what its operators give."""

TOLERANCE = 1e-8
"""How far a row's sum, or the flow between two states, may be from what it should be."""


@dataclass(frozen=True)
class Reversibility:
    """Whether all augmentations are time-reversible with one law π₀, and by how much they are not.

    Attributes
    ----------
    pi0
        The law that comes nearest: positive, and uniform where all matrices are symmetric. Each
        class of states that lead to each other weighs as much as it has states.
    violation
        The largest ``|π₀(u) A_j(u,v) − π₀(v) A_j(v,u)| / max(π₀(u), π₀(v))``, from 0 to 1.
    where
        The augmentation j and the states u and v where it is found.
    """

    pi0: np.ndarray
    violation: float
    where: tuple[int, int, int]

    @property
    def holds(self) -> bool:
        """Whether detailed balance holds, up to rounding."""
        return self.violation <= TOLERANCE

    @property
    def uniform(self) -> bool:
        """Whether π₀ gives every state the same weight."""
        return bool(np.ptp(self.pi0) == 0)

    def require(self, what: str) -> None:
        """Raise one clear line unless detailed balance holds."""
        if not self.holds:
            j, u, v = self.where
            raise AuguryError(
                f"{what} needs reversible augmentations with a common stationary law, but "
                f"augmentation {j} is not: its flows between states {u} and {v} differ by "
                f"{self.violation:.3g}; use chain.symmetrised() to make it reversible"
            )


def stochastic(matrices: Sequence[Any]) -> tuple[Csr, ...]:
    """Return the matrices as CSR with sorted indices, checked: square, alike, rows that sum to 1.

    The cost is one pass over the non-zeros; matrices already in that form are not copied.
    """
    checked: list[Csr] = []
    for j, given in enumerate(matrices):
        a = _matrix(given, f"augmentation {j}")
        square = a.ndim == 2 and a.shape[0] == a.shape[1] > 0
        if not square or (checked and a.shape != checked[0].shape):
            expected = checked[0].shape if checked else "a square matrix"
            raise AuguryError(f"augmentation {j} has shape {a.shape}; expected {expected}")
        if not a.has_canonical_format or not a.data.all():
            a = a.copy()
            a.sum_duplicates()
            a.eliminate_zeros()
        if a.nnz and not a.data.min() >= 0:
            row = int(np.searchsorted(a.indptr, int(a.data.argmin()), side="right")) - 1
            raise AuguryError(
                f"augmentation {j} has the entry {a.data.min():.6g} in row {row}; "
                "probabilities must be 0 or more"
            )
        sums = a @ np.ones(a.shape[0])
        worst = int(np.abs(sums - 1).argmax())
        if not abs(sums[worst] - 1) <= TOLERANCE:
            raise AuguryError(
                f"the rows of a transition matrix must sum to 1, but row {worst} of augmentation "
                f"{j} sums to {sums[worst]:.9g}; divide each row by its sum"
            )
        checked.append(a)
    return tuple(checked)


def _matrix(given: Any, name: str) -> Csr:
    """Return a sparse matrix in CSR, or anything that holds numbers."""
    try:
        return sp.csr_array(given if sp.issparse(given) else np.asarray(given), dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):  # of words, ragged lists, three dimensions
        raise AuguryError(
            f"{name} must be a square matrix of probabilities, got {kind_of(given)}"
        ) from None


def as_states(name: str, given: Any, states: int) -> np.ndarray:
    """Return the numbers of states as an array; raise if there are no such states."""
    found = as_numbers(name, given)
    wrong = found[(found < 0) | (found >= states) | (found != np.floor(found))]
    if wrong.size:
        raise AuguryError(f"{name}: expected states from 0 to {states - 1}, got {wrong[0]:g}")
    return found.astype(np.int64)


def as_generator(seed: Any) -> np.random.Generator:
    """Return NumPy's generator for a seed, or the generator itself."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(as_seed(seed))


def restart_law(weights: Any, states: int) -> np.ndarray:
    """Return ρ: the restart weights γ_i of the states, checked and divided by their sum."""
    try:
        rho = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise AuguryError(f"restart weights must be numbers, got {kind_of(weights)}") from None
    if rho.shape != (states,):
        raise AuguryError(
            f"expected {states} restart weights, one per state; got shape {rho.shape}"
        )
    if not (np.isfinite(rho).all() and (rho >= 0).all()):
        worst = int(np.where(np.isfinite(rho), rho, -np.inf).argmin())
        raise AuguryError(
            f"restart weights must be 0 or more, but that of state {worst} is {rho[worst]}"
        )
    if rho.sum() == 0:
        raise AuguryError(
            "no restart weight is positive; set one for each state that is an example"
        )
    return rho / rho.sum()


def reversibility(matrices: Sequence[Csr]) -> Reversibility:
    """Find π₀ and the worst violation of detailed balance, π₀(u) A_j(u,v) = π₀(v) A_j(v,u).

    Along an edge, detailed balance gives the ratio of π₀ at its two ends; so π₀ follows along a
    spanning forest, and all the other edges test it. The cost is a few passes over the non-zeros.
    """
    states = matrices[0].shape[0]
    pi0 = np.full(states, 1 / states)
    found = [_imbalance(a, None) for a in matrices]
    if max(violation for violation, _ in found) > TOLERANCE:
        law = _law_along_forest(sum(matrices[1:], start=matrices[0]))
        weighted = [_imbalance(a, law) for a in matrices]
        if max(weighted)[0] < max(found)[0]:  # the uniform law is kept where no other does better
            pi0, found = law, weighted
    j = max(range(len(found)), key=lambda k: found[k][0])
    violation, (u, v) = found[j]
    return Reversibility(pi0, violation, (j, u, v))


def _imbalance(a: Csr, law: np.ndarray | None) -> tuple[float, tuple[int, int]]:
    """Find where the flows there and back differ most, against the heavier of the two states."""
    flow: Csr = a if law is None else sp.csr_array(sp.diags_array(law) @ a)
    back = flow.T.tocsr()
    if np.array_equal(flow.indptr, back.indptr) and np.array_equal(flow.indices, back.indices):
        difference: Csr = sp.csr_array((np.abs(flow.data - back.data), flow.indices, flow.indptr))
    else:
        difference = abs(flow - back)
    if law is not None:
        entries = difference.tocoo()
        entries.data /= np.maximum(law[entries.row], law[entries.col])
        difference = entries.tocsr()
    if not difference.nnz:
        return 0.0, (0, 0)
    worst = int(difference.data.argmax())
    row = int(np.searchsorted(difference.indptr, worst, side="right")) - 1
    return float(difference.data[worst]), (row, int(difference.indices[worst]))


def _law_along_forest(total: Csr) -> np.ndarray:
    """Follow π₀(v) = π₀(u) A(u,v) / A(v,u) along a spanning forest of the two-way edges."""
    states = total.shape[0]
    two_way = total.multiply(total.T).tocoo()
    count, member = connected_components(two_way, directed=False)
    sizes = np.bincount(member, minlength=count)
    roots = np.unique(member, return_index=True)[1]
    # one more node, linked to a state of each component, makes one search reach them all
    rows = np.concatenate([two_way.row, np.full(count, states)])
    columns = np.concatenate([two_way.col, roots])
    joined = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(states + 1, states + 1))
    _, parent = breadth_first_order(joined, states, directed=False)
    parent[states] = states
    child = np.flatnonzero(parent[:states] != states)
    log_law = np.zeros(states + 1)
    up = parent[child]
    if len(child):  # SciPy gives another type for no entries
        log_law[child] = np.log(total[up, child]) - np.log(total[child, up])
    while np.any(parent != parent[parent]):  # each round doubles how far a state looks up its tree
        log_law += log_law[parent]
        parent = parent[parent]
    log_law = log_law[:states]
    highest = np.full(count, -np.inf)
    np.maximum.at(highest, member, log_law)
    law = np.exp(log_law - highest[member])
    law *= (sizes / np.bincount(member, law, minlength=count))[member]
    return np.maximum(law / states, np.finfo(np.float64).tiny)
