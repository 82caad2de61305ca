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

    def __init__(
        self, groups: int, inputs: int, outputs: int, size: int | tuple[int, int], bias: bool
    ) -> None:
        size = (size, size) if isinstance(size, int) else size
        padding = (size[0] // 2, size[1] // 2)
        super().__init__(
            groups * inputs, groups * outputs, size, padding=padding, groups=groups, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        if not (input.is_cuda and torch.is_autocast_enabled("cuda") and self.groups > 1):
            return super().forward(input)
        dtype = torch.get_autocast_dtype("cuda")
        # (g, rows, columns, c, o): the order in which a patch lies in memory
        weight = self.weight.unflatten(0, (self.groups, -1)).permute(0, 3, 4, 2, 1)
        with torch.autocast("cuda", enabled=False):
            rows = input.to(dtype).permute(0, 2, 3, 1).contiguous()
            out = by_patches(rows, weight.to(dtype)).permute(0, 3, 1, 2)
        return out if self.bias is None else out + self.bias.to(dtype).view(1, -1, 1, 1)


def by_patches(x: Tensor, weight: Tensor) -> Tensor:
    """Convolve ``(b, h, w, g·c)`` with ``(g, rows, columns, c, o)``, zeros around.

    Notes
    -----
    Patches are written once and read twice: rows · columns · c values a position and group.
    """
    groups, _, _, c, _ = weight.shape
    if spare := -c % _WORD:
        x = F.pad(x.unflatten(3, (groups, c)), (0, spare)).flatten(3)
        weight = F.pad(weight, (0, 0, 0, spare))
    return _ByPatches.apply(x, weight)


class _ByPatches(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        patches = _patches(x, *weight.shape[:3])
        ctx.save_for_backward(patches, weight)
        return _product(patches, weight.flatten(1, 3))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        patches, weight = ctx.saved_tensors
        groups, rows, columns, c, outputs = weight.shape
        grad = grads[0].contiguous()
        here = grad.view(-1, groups, outputs).transpose(0, 1)
        own = torch.bmm(patches.flatten(0, 2).permute(1, 2, 0), here).view(weight.shape)
        back = None
        if ctx.needs_input_grad[0]:
            # the transposed convolution: taps in reverse, inputs and outputs exchanged
            turned = weight.flip(1, 2).transpose(3, 4).reshape(groups, -1, c)
            back = _product(_patches(grad, groups, rows, columns), turned)
        return back, own


def _patches(x: Tensor, groups: int, rows: int, columns: int) -> Tensor:
    """Return the neighbourhood of every position: ``(b, h, w, g, rows·columns·c)``."""
    c = x.shape[3] // groups
    x = F.pad(x, (0, 0, columns // 2, columns // 2, rows // 2, rows // 2))
    if x.element_size() == 2 and c % _WORD == 0:  # whole words move eight times as fast
        words = _windows(x.view(torch.complex128), groups, rows, columns, c // _WORD)
        return words.view(x.dtype)
    return _windows(x, groups, rows, columns, c)


def _windows(x: Tensor, groups: int, rows: int, columns: int, c: int) -> Tensor:
    b, height, width, _ = x.shape
    shape = (b, height - rows + 1, width - columns + 1, groups, rows, columns, c)
    row, column = x.stride(1), x.stride(2)
    windows = x.as_strided(shape, (x.stride(0), row, column, c, row, column, 1))
    # one row of single words is reshaped without a copy, and a view of words must lie in memory
    return windows.reshape(*shape[:4], rows * columns * c).contiguous()


def _product(patches: Tensor, weight: Tensor) -> Tensor:
    """Multiply ``(b, h, w, g, k)`` by ``(g, k, o)``, written as ``(b, h, w, g·o)``."""
    *place, groups, k = patches.shape
    out = patches.new_empty(*place, groups * weight.shape[2])
    rows = patches.view(-1, groups, k).transpose(0, 1)
    torch.bmm(rows, weight, out=out.view(-1, groups, weight.shape[2]).transpose(0, 1))
    return out
