"""Smooth losses on kept features: L-BFGS in coordinates where the curvature is nearly even."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from augury._base.text import count
from augury.kernel.solvers.batches import Batches
from augury.kernel.solvers.krylov import Subspace
from augury.objectives import Loss


def minimise(
    head: nn.Linear,
    batches: Batches,
    objective: Callable[..., Tensor],
    loss: Loss,
    *,
    ridge: float,
    space: Subspace | None = None,
    iterations: int = 500,
    tol: float = 1e-5,
) -> int:
    """Minimise the mean objective + λ‖w‖² over a linear head, in place; return the passes it took.

    Parameters
    ----------
    head
        Features to outputs; its bias, if it has one, is not penalised.
    batches
        Orbits and targets.
    objective, loss
        One of `augury.objectives`, and the loss of one example.
    ridge
        λ.
    space
        The leading eigenvectors of E[φφᵀ], to even out the curvature: the features of a smooth
        kernel have eigenvalues over many powers of ten, on which plain L-BFGS crawls.
    iterations, tol
        The most iterations, after which it warns, and the largest entry of the gradient, where
        the curvature is evened out, at which it stops.
    """
    even = _evener(space, ridge, loss.smoothness)
    inner = nn.Parameter(_even_out(head.weight.detach(), even, inverse=True))
    parameters = [inner] if head.bias is None else [inner, head.bias]
    optimizer = torch.optim.LBFGS(
        parameters,
        max_iter=iterations,
        max_eval=2 * iterations,
        history_size=20,
        tolerance_grad=tol,
        tolerance_change=1e-4 * tol,
        line_search_fn="strong_wolfe",
    )
    before = batches.passes

    def closure() -> float:
        with torch.no_grad():
            head.weight.copy_(_even_out(inner, even))
        head.zero_grad()
        total = 0.0
        for block in batches:
            value = objective(head, block.orbit, block.y, loss).sum() / len(batches)
            value.backward()
            total += float(value.detach())
        assert head.weight.grad is not None
        with torch.no_grad():
            total += ridge * float(head.weight.square().sum())
            inner.grad = _even_out(head.weight.grad + 2 * ridge * head.weight, even)
        return total

    optimizer.step(closure)
    state = optimizer.state[inner]
    if state["n_iter"] >= iterations or state["func_evals"] >= 2 * iterations:
        warnings.warn(
            f"the solver stopped after {count(state['n_iter'], 'iteration')}, before the gradient "
            f"fell below {tol:g}; try a larger ridge",
            ConvergenceWarning,
            stacklevel=4,
        )
    with torch.no_grad():
        head.weight.copy_(_even_out(inner, even))
    return batches.passes - before


def _evener(
    space: Subspace | None, ridge: float, smoothness: float
) -> tuple[Tensor, Tensor, float] | None:
    """Return eigenvectors ``(d, k)``, the stretch along each and the stretch elsewhere."""
    if space is None:
        return None
    curvature = min(smoothness, 2.0) * space.values + 2 * ridge
    basis = space.lift(torch.eye(len(space.values), dtype=torch.float64).to(space.values))
    stretch = curvature.rsqrt()
    return basis, stretch.to(basis), float(stretch.max())


def _even_out(
    rows: Tensor, even: tuple[Tensor, Tensor, float] | None, *, inverse: bool = False
) -> Tensor:
    """Multiply rows ``(C, d)`` by the symmetric matrix of the stretches, or by its inverse."""
    if even is None:
        return rows.clone()
    basis, stretch, rest = even
    if inverse:
        stretch, rest = 1 / stretch, 1 / rest
    along = rows @ basis
    return rows * rest + (along * (stretch - rest)) @ basis.mT
