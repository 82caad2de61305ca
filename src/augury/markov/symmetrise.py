"""Lossy transformations made symmetric, with the same reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from augury._base.errors import AuguryError
from augury._base.given import as_numbers
from augury.markov.checks import Csr, stochastic


def footnote(matrix: Any) -> Csr:
    """Make a transition matrix symmetric as the paper's footnote does.

    Each move is joined by its inverse, W = A + Aᵀ off the diagonal, scaled by one factor
    1 / (1 + max row sum of W) so that all rows can be filled up by staying. It gives the
    footnote's matrix for its example. One state that many lead to slows down the whole chain,
    which `metropolis` avoids. A symmetric matrix comes back as it is.
    """
    (a,) = stochastic([matrix])
    moves = _moves(a)
    if moves is None:
        return a
    scale = 1 / (1 + moves.sum(axis=1).max())
    return _filled(moves * scale)


def metropolis(matrix: Any, pi0: Any = None) -> Csr:
    """Make a transition matrix reversible by the rule of Metropolis and Hastings.

    Propose by Q, the rows of A + Aᵀ divided by their sums, and accept with probability
    min(1, π₀(v)Q(v,u) / π₀(u)Q(u,v)): the result P(u,v) = min(Q(u,v), π₀(v)Q(v,u)/π₀(u)) reaches
    whatever A or its inverse reaches in one step and is reversible with π₀, uniform unless given.
    A symmetric matrix comes back as it is where π₀ is uniform.
    """
    (a,) = stochastic([matrix])
    if pi0 is None and _moves(a) is None:
        return a
    law = np.ones(a.shape[0]) if pi0 is None else as_numbers("pi0", pi0)
    if law.shape != a.shape[:1] or not (law > 0).all():
        raise AuguryError(f"pi0 must have {a.shape[0]} positive weights, one per state")
    both = a + a.T
    proposal = sp.diags_array(1 / both.sum(axis=1)) @ both
    flow: Csr = sp.diags_array(law) @ proposal
    return _filled(_off_diagonal(sp.diags_array(1 / law) @ flow.minimum(flow.T)))


SYMMETRISERS: dict[str, Callable[[Any], Csr]] = {
    "metropolis": metropolis,
    "footnote": footnote,
}


def _moves(a: Csr) -> Csr | None:
    """Return A + Aᵀ off the diagonal; None if A is symmetric already."""
    back = a.T.tocsr()
    if abs(a - back).max() == 0:
        return None
    return _off_diagonal(a + back)


def _off_diagonal(a: Any) -> Csr:
    entries: Any = sp.coo_array(a)
    away = entries.row != entries.col
    return sp.csr_array(
        (entries.data[away], (entries.row[away], entries.col[away])), shape=entries.shape
    )


def _filled(moves: Csr) -> Csr:
    """Let each row stay where it is with the probability that is left."""
    stay = np.maximum(1 - moves.sum(axis=1), 0)
    return sp.csr_array(moves + sp.diags_array(stay))
