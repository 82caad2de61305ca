"""Losses of one example, with their curvature: δᵀ∇²l δ, in closed form where there is one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_number, check_tensors
from augury._base.text import kind_of
from augury.objectives.derivatives import jvp


class Loss(ABC):
    """l(output; y), one number for each example, twice differentiable in the output.

    Outputs have shape ``(b,)`` or ``(b, C)``. `convexity` (α) and `smoothness` (β) bound the
    eigenvalues of ∇²l from below and above, over all outputs; β is infinite where none is known.
    """

    convexity: float = 0.0
    smoothness: float = math.inf

    @abstractmethod
    def __call__(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the loss of each example: ``(b,)``."""

    @abstractmethod
    def curvature(self, output: Tensor, delta: Tensor, y: Tensor | None = None) -> Tensor:
        """Return δᵀ∇²l(output; y)δ of each example: ``(b,)``; y only where ∇²l depends on it."""


@dataclass(frozen=True)
class Quadratic(Loss):
    """l = ‖output − y‖², y of the output's shape; ∇²l = 2I."""

    convexity = 2.0
    smoothness = 2.0

    def __call__(self, output: Tensor, y: Tensor) -> Tensor:
        check_tensors(output=output, y=y)
        if output.shape != y.shape:
            raise AuguryError(
                f"the quadratic loss takes targets of the outputs' shape {tuple(output.shape)}, "
                f"and these have {tuple(y.shape)}; give classes as one-hot rows"
            )
        return _over_outputs((output - y).square())

    def curvature(self, output: Tensor, delta: Tensor, y: Tensor | None = None) -> Tensor:
        _check_change(output, delta)
        return 2 * _over_outputs(delta.square())


@dataclass(frozen=True)
class Logistic(Loss):
    """l = log(1 + exp(−y · output)), y = ±1; l'' = ¼ sech²(output / 2) (Appendix D)."""

    smoothness = 0.25

    def __call__(self, output: Tensor, y: Tensor) -> Tensor:
        check_tensors(output=output, y=y)
        x = _scalar(output)
        if not x.is_floating_point():
            raise AuguryError(f"the logistic loss takes floating-point outputs, not {x.dtype}")
        if y.shape != x.shape:
            raise AuguryError(
                f"the logistic loss takes one label for each of the outputs {tuple(x.shape)}, and "
                f"these have {tuple(y.shape)}"
            )
        if not y.is_floating_point() and bool((y == 0).any()):
            raise AuguryError(
                "the logistic loss takes labels −1 and 1, not 0 and 1; pass 2 * y - 1"
            )
        return -F.logsigmoid(x * y.to(output.dtype))

    def curvature(self, output: Tensor, delta: Tensor, y: Tensor | None = None) -> Tensor:
        _check_change(output, delta)
        x = _scalar(output)  # σ(x)σ(−x), since 1 − σ(x) would lose all its digits for a large x
        return x.sigmoid() * (-x).sigmoid() * _scalar(delta).square()


@dataclass(frozen=True)
class Multinomial(Loss):
    """l = −log softmax(output)_y, y whole numbers; ∇²l = diag(p) − ppᵀ (Appendix D)."""

    smoothness = 0.5

    def __call__(self, output: Tensor, y: Tensor) -> Tensor:
        check_tensors(output=output, y=y)
        if output.dim() < 2 or y.shape != output.shape[:-1] or y.is_floating_point():
            raise AuguryError(
                "the multinomial loss takes outputs (b, C) and class numbers (b,), not "
                f"{tuple(output.shape)} and {tuple(y.shape)} of {y.dtype}"
            )
        try:
            each = F.cross_entropy(output.flatten(0, -2), y.flatten().long(), reduction="none")
        except IndexError:
            raise AuguryError(
                f"class numbers must be from 0 to {output.shape[-1] - 1}, one for each output, got "
                f"{int(y.min())} to {int(y.max())}"
            ) from None
        return each.view(y.shape)

    def curvature(self, output: Tensor, delta: Tensor, y: Tensor | None = None) -> Tensor:
        _check_change(output, delta)
        p = output.softmax(-1)
        mean = (p * delta).sum(-1, keepdim=True)
        return (p * (delta - mean).square()).sum(-1)  # the variance of δ under p


@dataclass(frozen=True)
class AnyLoss(Loss):
    """Any twice-differentiable function; its curvature is a Jacobian-vector product of a gradient.

    Parameters
    ----------
    fn
        From outputs and targets to one number for each example.
    convexity, smoothness
        α and β where they are known, for `certify`.
    """

    fn: Callable[[Tensor, Tensor], Tensor]
    convexity: float = 0.0
    smoothness: float = math.inf

    def __call__(self, output: Tensor, y: Tensor) -> Tensor:
        found = self.fn(output, y)
        if not isinstance(found, Tensor):
            raise AuguryError(f"the loss must return a tensor, but returned {kind_of(found)}")
        if found.shape != output.shape[:1]:
            got = "one number" if found.dim() == 0 else f"shape {tuple(found.shape)}"
            raise AuguryError(
                f"the loss must return one number for each of the {len(output)} examples, "
                f"but returned {got}; do not reduce over examples (reduction='none'), only outputs"
            )
        return found

    def curvature(self, output: Tensor, delta: Tensor, y: Tensor | None = None) -> Tensor:
        if y is None:
            raise AuguryError("the curvature of this loss may depend on y; pass y")
        gradient = torch.func.grad(lambda out: self(out, y).sum())
        return _over_outputs(delta * jvp(gradient, output, delta)[1])


quadratic = Quadratic()
logistic = Logistic()
multinomial = Multinomial()


def any_loss(
    fn: Callable[[Tensor, Tensor], Tensor], *, convexity: float = 0.0, smoothness: float = math.inf
) -> Loss:
    """Make a `Loss` of a function that gives one number for each example; a `Loss` stays as it is.

    Examples
    --------
    >>> import torch
    >>> log_cosh = any_loss(lambda out, y: (out - y).cosh().log(), smoothness=1)
    >>> log_cosh.curvature(torch.zeros(2), torch.tensor([1.0, 3.0]), torch.zeros(2))
    tensor([1., 9.])
    """
    if isinstance(fn, Loss):
        return fn
    if not callable(fn):
        raise AuguryError(
            f"loss must be a Loss or a function of outputs and targets, got {kind_of(fn)}"
        )
    for name, value in (("convexity", convexity), ("smoothness", smoothness)):
        if not (isinstance(value, float) and value == math.inf):
            as_number(name, value)
    return AnyLoss(fn, convexity, smoothness)


def _check_change(output: Tensor, delta: Tensor) -> None:
    check_tensors(output=output, delta=delta)
    if output.shape != delta.shape:
        raise AuguryError(
            f"delta must have the shape {tuple(output.shape)} of the outputs, got "
            f"{tuple(delta.shape)}"
        )


def _over_outputs(x: Tensor) -> Tensor:
    """Sum over what belongs to one example: ``(b, ...)`` to ``(b,)``."""
    return x if x.dim() == 1 else x.flatten(1).sum(1)


def _scalar(output: Tensor) -> Tensor:
    if output.dim() == 1:
        return output
    if output.shape[1:] == (1,):
        return output.squeeze(1)
    raise AuguryError(
        f"the logistic loss takes one output for each example, not {tuple(output.shape[1:])}; "
        "use the multinomial loss for more than two classes"
    )
