"""Blocks of convolution, batch norm, ReLU and pooling: the body of the networks for images."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augury.forecasting.training.convolution import GroupedConv


class Block(nn.Module):
    """A convolution of 3 × 3, batch norm, ReLU and max-pooling, of several networks."""

    def __init__(self, groups: int, inputs: int, outputs: int, pool: int, ceil: bool) -> None:
        super().__init__()
        self.conv = GroupedConv(groups, inputs, outputs, 3, bias=False)
        self.norm = nn.BatchNorm2d(groups * outputs)
        self.window, self.ceil = pool, ceil
        self.pool = nn.MaxPool2d(pool, ceil_mode=ceil) if pool > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.norm(self.conv(x))).relu()  # there is less left to do after pooling


class Blocks(nn.Sequential):
    """Blocks, then the highest value of each channel: ``(b, g·c, h, w)`` to ``(b, g·o)``.

    Parameters
    ----------
    groups, inputs
        Networks, and channels of each.
    layers
        Outputs and pooling of each block.
    ceil
        Whether pooling keeps what is left at the border.
    """

    def __init__(
        self, groups: int, inputs: int, layers: Sequence[tuple[int, int]], ceil: bool = False
    ) -> None:
        widths = [inputs, *(outputs for outputs, _ in layers)]
        blocks = zip(widths, layers, strict=False)
        super().__init__(*(Block(groups, width, *layer, ceil) for width, layer in blocks))

    def forward(self, input: Tensor) -> Tensor:
        short = input.is_cuda and torch.is_autocast_enabled("cuda")
        if self.training and short and (fused := fused_kernels(input.device)):
            x = fused.run_blocks(input, list(self))
            return x.flatten(2, 3).max(2).values.transpose(0, 1).flatten(1)
        return F.adaptive_max_pool2d(super().forward(input), 1).flatten(1)


@functools.cache
def fused_kernels(device: torch.device) -> ModuleType | None:
    """Return the kernels that do a block in one step, where Triton can make them."""
    try:
        from augury.forecasting.training import fused

        fused.compile_all()
        x = torch.zeros(8, 4, 8, 8, device=device)
        with torch.random.fork_rng(devices=[]):  # weights are drawn from the global generator
            block = Block(2, 2, 16, 2, False).to(device)
        fused.run_blocks(x, [block]).sum().backward()
    except torch.OutOfMemoryError:  # says nothing of the kernels: not to be remembered
        raise
    except Exception:  # no Triton, no compiler for it, or a device it does not know: as before
        return None
    return fused
