"""Grouped convolutions as batched matrix products, for a GPU.

cuDNN runs a grouped convolution one group after the other, hundreds of small kernels; as one
batched product of patches and weights it is a few large ones.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_WORD = 8  # channels of bfloat16 that are copied as one word of 16 bytes


class GroupedConv(nn.Conv2d):
    """A convolution in groups, with as many outputs as positions: odd size, stride 1, padded.

    Anywhere but on a GPU in half precision it is torch's own.
    """

    def __init__(self, groups: int, inputs: int, outputs: int, size: int, bias: bool) -> None:
        super().__init__(
            groups * inputs, groups * outputs, size, padding=size // 2, groups=groups, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        if not (input.is_cuda and torch.is_autocast_enabled("cuda") and self.groups > 1):
            return super().forward(input)
        dtype = torch.get_autocast_dtype("cuda")
        # (g, size², c, o): the order in which a patch lies in memory
        weight = self.weight.unflatten(0, (self.groups, -1)).permute(0, 3, 4, 2, 1).flatten(1, 2)
        with torch.autocast("cuda", enabled=False):
            rows = input.to(dtype).permute(0, 2, 3, 1).contiguous()
            out = by_patches(rows, weight.to(dtype)).permute(0, 3, 1, 2)
        return out if self.bias is None else out + self.bias.to(dtype).view(1, -1, 1, 1)


def by_patches(x: Tensor, weight: Tensor) -> Tensor:
    """Convolve ``(b, h, w, g·c)`` with ``(g, size², c, o)``, at every position, zeros around.

    Notes
    -----
    Patches are written once and read twice: size² · c values a position and group.
    """
    groups, _, c, _ = weight.shape
    if spare := -c % _WORD:
        x = F.pad(x.unflatten(3, (groups, c)), (0, spare)).flatten(3)
        weight = F.pad(weight, (0, 0, 0, spare))
    return _ByPatches.apply(x, weight)  # type: ignore[no-any-return]  # apply is untyped


class _ByPatches(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        patches = _patches(x, weight.shape[0], weight.shape[1])
        ctx.save_for_backward(patches, weight)
        return _product(patches, weight.flatten(1, 2))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        patches, weight = ctx.saved_tensors
        groups, taps, c, outputs = weight.shape
        grad = grads[0].contiguous()
        rows = grad.view(-1, groups, outputs).transpose(0, 1)
        own = torch.bmm(patches.flatten(0, 2).permute(1, 2, 0), rows).view_as(weight)
        back = None
        if ctx.needs_input_grad[0]:
            # the transposed convolution: taps in reverse, inputs and outputs exchanged
            turned = weight.flip(1).transpose(2, 3).reshape(groups, taps * outputs, c)
            back = _product(_patches(grad, groups, taps), turned)
        return back, own


def _patches(x: Tensor, groups: int, taps: int) -> Tensor:
    """Give the neighbourhood of every position: ``(b, h, w, g, taps·c)``."""
    size = round(taps**0.5)
    c = x.shape[3] // groups
    x = F.pad(x, (0, 0, size // 2, size // 2, size // 2, size // 2))
    if x.element_size() == 2 and c % _WORD == 0:  # whole words move eight times as fast
        return _windows(x.view(torch.complex128), groups, size, c // _WORD).view(x.dtype)
    return _windows(x, groups, size, c)


def _windows(x: Tensor, groups: int, size: int, c: int) -> Tensor:
    b, height, width, _ = x.shape
    shape = (b, height - size + 1, width - size + 1, groups, size, size, c)
    row, column = x.stride(1), x.stride(2)
    windows = x.as_strided(shape, (x.stride(0), row, column, c, row, column, 1))
    return windows.reshape(*shape[:4], size * size * c)


def _product(patches: Tensor, weight: Tensor) -> Tensor:
    """Multiply ``(b, h, w, g, k)`` by ``(g, k, o)``, written as ``(b, h, w, g·o)``."""
    *place, groups, k = patches.shape
    out = patches.new_empty(*place, groups * weight.shape[2])
    rows = patches.view(-1, groups, k).transpose(0, 1)
    torch.bmm(rows, weight, out=out.view(-1, groups, weight.shape[2]).transpose(0, 1))
    return out
