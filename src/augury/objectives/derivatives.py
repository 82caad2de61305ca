"""Jacobian-vector products through anything, in a form that can itself be differentiated."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import forward_ad

Map = Callable[[Tensor], Tensor]


def jvp(fn: Map, at: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Return fn(at) and its derivative along delta: a forward pass of about twice the cost."""
    _prepare()
    found = torch.func.jvp(fn, (at,), (delta,))
    return found[0], found[1]


def second_derivative(fn: Map, at: Tensor, delta: Tensor) -> Tensor:
    """Return d²/dε² fn(at + ε delta) at ε = 0: one Jacobian-vector product inside another."""
    return jvp(lambda x: jvp(fn, x, delta)[1], at, delta)[1]


@functools.cache
def _prepare() -> None:
    """Let torch load its rules of forward differentiation, which warns of a deprecation inside."""
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore", DeprecationWarning)
        forward_ad.make_dual(torch.zeros(1), torch.zeros(1))
