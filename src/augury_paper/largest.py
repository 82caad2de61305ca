"""The largest of four values side by side: what a pool of two by two takes.

A CUDA kernel of torch's own would keep an index of eight bytes for each value, or compare all
values anew in the backward pass; here one byte says which of the four it was.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor


def largest(x: Tensor) -> Tensor:
    """Return the largest along the last axis but one, which has four: ``(…, 4, k)`` to ``(…, k)``.

    On a CUDA device with Triton it can be differentiated once, backwards over forwards too.
    """
    if x.is_cuda and x.dtype != torch.float64 and _kernels() is not None:
        return _Largest.apply(x)[0]
    return x.amax(-2)


class _Largest(torch.autograd.Function):
    """The values, and which they were."""

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.contiguous()
        out = x.new_empty(*x.shape[:-2], x.shape[-1])
        which = torch.empty_like(out, dtype=torch.uint8)
        _run("find", x, out, which)
        return out, which

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
        ctx.save_for_forward(output[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return _spread(grads[0], ctx.saved_tensors[0])

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> tuple[Tensor, None]:
        return _Taken.apply(tangents[0], ctx.saved_tensors[0]), None


class _Taken(torch.autograd.Function):
    """The values at given places: linear."""

    @staticmethod
    def forward(x: Tensor, which: Tensor) -> Tensor:
        out = torch.empty_like(which, dtype=x.dtype)
        _run("take", x.contiguous(), out, which)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _spread(grads[0], ctx.saved_tensors[0]), None


def _spread(grad: Tensor, which: Tensor) -> Tensor:
    out = grad.new_empty(*grad.shape[:-1], 4, grad.shape[-1])
    _run("spread", out, grad.contiguous(), which)
    return out


def _run(name: str, four: Tensor, one: Tensor, which: Tensor) -> None:
    kernels = _kernels()
    assert kernels is not None
    total, block = one.numel(), 1024
    kernels[name][(-(-total // block),)](four, one, which, total, one.shape[-1], BLOCK=block)


@functools.cache
def _kernels() -> dict[str, Any] | None:
    """Return the kernels, where there is Triton."""
    try:
        from augury_paper import largest_triton
    except ImportError:
        return None
    return {name: getattr(largest_triton, name) for name in ("find", "take", "spread")}
