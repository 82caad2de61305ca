"""f, g, ĝ, g̃: interchangeable functions of a head, an orbit, targets and a loss.

Each gives the loss of each example ``(b,)``, to be averaged over examples (Section 4), and can be
differentiated in the head's parameters and in the features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.given import check_kind, check_targets, is_one_of
from augury._base.text import kind_of, shown
from augury.features.orbit import Orbit
from augury.objectives.derivatives import jvp, second_derivative
from augury.objectives.losses import Loss

Head = Callable[[Tensor], Tensor]
"""Features ``(b, *d)`` to outputs ``(b, C)`` or ``(b,)``: a linear layer, the rest of a network."""

Objective = Callable[[Head, Orbit, Tensor, Loss], Tensor]

Curvature = Literal["gauss-newton", "hessian"]


def original(head: Head, orbit: Orbit, y: Tensor, loss: Loss) -> Tensor:
    """f: l(head(φ(x)); y), without augmentation. One pass through the head."""
    _check(head, orbit, y, loss)
    if orbit.origin is None:
        raise AuguryError(
            "the objective without augmentation needs the features of the examples as they are; "
            "create the orbit with origin="
        )
    return loss(head(orbit.origin), y)


def exact(head: Head, orbit: Orbit, y: Tensor, loss: Loss) -> Tensor:
    """g: E_t l(head(φ(t)); y), equation (4). One pass through the head for each view."""
    _check(head, orbit, y, loss)
    n = len(orbit.weights)
    output = head(orbit.features.flatten(0, 1))
    each = loss(output, y.repeat(n, *[1] * (y.dim() - 1)))
    return orbit.weights.to(each) @ each.unflatten(0, (n, -1))


def first_order(head: Head, orbit: Orbit, y: Tensor, loss: Loss) -> Tensor:
    """ĝ: l(head(ψ(x)); y), the loss of the averaged features, equation (5). One pass.

    For a convex loss and a linear head it is never above g (Jensen).
    """
    _check(head, orbit, y, loss)
    return loss(head(orbit.mean), y)


def second_order(
    head: Head, orbit: Orbit, y: Tensor, loss: Loss, *, curvature: Curvature = "gauss-newton"
) -> Tensor:
    """g̃: the averaged features' loss and the variance that augmentation penalises, equation (6).

    g̃ = ĝ + ½ E[Δᵀ H Δ], Δ = φ(t) − ψ(x), H the curvature of loss and head together at ψ(x).

    Parameters
    ----------
    head, orbit, y, loss
        As for the others.
    curvature
        ``"gauss-newton"`` takes JᵀlʹʹJ for H, with J the head's Jacobian at ψ, as tangent
        propagation does: never negative for a convex loss. ``"hessian"`` adds the head's own
        curvature. They are the same for a linear head, and for one of linear pieces (ReLU).

    Notes
    -----
    One Jacobian-vector product through the head a view (a forward pass of about twice the
    cost; two nested ones for the Hessian); for `torch.nn.Linear`, one matrix product for all.
    """
    return first_order(head, orbit, y, loss) + variance_term(head, orbit, y, loss, curvature)


def second_order_only(
    head: Head, orbit: Orbit, y: Tensor, loss: Loss, *, curvature: Curvature = "gauss-newton"
) -> Tensor:
    """Tangent propagation's form, f + (g̃ − ĝ): examples as they are, with the variance term."""
    return original(head, orbit, y, loss) + variance_term(head, orbit, y, loss, curvature)


def variance_term(
    head: Head, orbit: Orbit, y: Tensor, loss: Loss, curvature: Curvature = "gauss-newton"
) -> Tensor:
    """g̃ − ĝ = ½ E[Δᵀ H Δ] of each example: ``(b,)``."""
    _check(head, orbit, y, loss)
    if not is_one_of(curvature, ("gauss-newton", "hessian")):
        raise AuguryError(f"curvature must be 'gauss-newton' or 'hessian', not {shown(curvature)}")
    at, deviations = orbit.mean, orbit.deviations
    if type(head) is nn.Linear:  # J is the weight; the head has no curvature of its own
        output, changes = head(at), F.linear(deviations, cast(nn.Linear, head).weight)
        each = [loss.curvature(output, change, y) for change in changes]
    elif curvature == "gauss-newton":
        pushed = (jvp(head, at, delta) for delta in deviations)
        each = [loss.curvature(output, change, y) for output, change in pushed]
    else:
        each = [second_derivative(lambda x: loss(head(x), y), at, delta) for delta in deviations]
    stacked = torch.stack(each)
    return 0.5 * (orbit.weights.to(stacked) @ stacked)


def _check(head: Head, orbit: Orbit, y: Tensor, loss: Loss) -> None:
    """Raise one clear line unless these are what an objective takes."""
    if not callable(head):
        raise AuguryError(f"head must be a module or a function of features, got {kind_of(head)}")
    check_kind("orbit", orbit, Orbit, "an Orbit")
    check_kind("loss", loss, Loss, "a Loss, such as multinomial")
    check_targets(y, orbit.features.shape[1])
