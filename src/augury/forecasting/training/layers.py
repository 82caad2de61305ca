"""Layers of several networks at once, which share no weight."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class GroupedLinear(nn.Module):
    """A dense layer for each member: ``(b, g, inputs)`` to ``(b, g, outputs)``."""

    def __init__(self, members: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(members, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, 1, outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x.transpose(0, 1), self.weight).transpose(0, 1)


class Split(nn.Module):
    """Split features into one row for each member: ``(b, g·c, …)`` to ``(b, g, c·…)``."""

    def __init__(self, members: int) -> None:
        super().__init__()
        self.members = members

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(len(x), self.members, -1)
