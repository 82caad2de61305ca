"""Several networks of one architecture as a single network with grouped convolutions.

A GPU is idle with one small network and busy with a hundred. Members share no weight: member g
sees channels g·C to (g+1)·C of the input and gives row g of the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable

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


class _Split(nn.Module):
    """Give each member its own row of features: ``(b, g·c, h, w)`` to ``(b, g, c·h·w)``."""

    def __init__(self, members: int) -> None:
        super().__init__()
        self.members = members

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(1, (self.members, -1)).flatten(2)


class _Residual(nn.Module):
    def __init__(self, branch: nn.Module, skip: nn.Module) -> None:
        super().__init__()
        self.branch, self.skip = branch, skip

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.branch(x) + self.skip(x))


def _conv(g: int, inputs: int, outputs: int, size: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(g * inputs, g * outputs, size, stride, padding=size // 2, groups=g)


def _block(g: int, inputs: int, outputs: int) -> list[nn.Module]:
    return [_conv(g, inputs, outputs), nn.BatchNorm2d(g * outputs), nn.ReLU()]


def lenet(g: int, channels: int, side: tuple[int, int], classes: int) -> nn.Sequential:
    """Two convolutions (6 and 16) and three dense layers (120, 84, classes)."""
    return nn.Sequential(
        nn.Conv2d(g * channels, g * 6, 5, padding=2, groups=g),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(g * 6, g * 16, 5, padding=2, groups=g),
        nn.ReLU(),
        nn.MaxPool2d(2),
        _Split(g),
        GroupedLinear(g, 16 * (side[0] // 4) * (side[1] // 4), 120),
        nn.ReLU(),
        GroupedLinear(g, 120, 84),
        nn.ReLU(),
        GroupedLinear(g, 84, classes),
    )


def cnn(g: int, channels: int, side: tuple[int, int], classes: int) -> nn.Sequential:
    """Five 3×3 convolutions with batch norm (24-24-48-48-96), global max-pool."""
    pools = [nn.MaxPool2d(2)] if max(side) <= 40 else [nn.MaxPool2d(4)]
    return nn.Sequential(
        *_block(g, channels, 24),
        *_block(g, 24, 24),
        *pools,
        *_block(g, 24, 48),
        *_block(g, 48, 48),
        nn.MaxPool2d(2),
        *_block(g, 48, 96),
        nn.AdaptiveMaxPool2d(1),
        _Split(g),
        GroupedLinear(g, 96, classes),
    )


def resnet(g: int, channels: int, side: tuple[int, int], classes: int) -> nn.Sequential:
    """A stem and three residual blocks (16, 32, 64) with batch norm, global mean."""
    layers: list[nn.Module] = _block(g, channels, 16)
    width = 16
    for outputs in (16, 32, 64):
        stride = 1 if outputs == width else 2
        branch = nn.Sequential(
            _conv(g, width, outputs, stride=stride),
            nn.BatchNorm2d(g * outputs),
            nn.ReLU(),
            _conv(g, outputs, outputs),
            nn.BatchNorm2d(g * outputs),
        )
        skip = nn.Identity() if stride == 1 else _conv(g, width, outputs, 1, stride)
        layers.append(_Residual(branch, skip))
        width = outputs
    layers += [nn.AdaptiveAvgPool2d(1), _Split(g), GroupedLinear(g, width, classes)]
    return nn.Sequential(*layers)


ARCHITECTURES: dict[str, Callable[[int, int, tuple[int, int], int], nn.Sequential]] = {
    "lenet": lenet,
    "cnn": cnn,
    "resnet": resnet,
}


class Grouped(nn.Module):
    """`members` networks of one architecture: inputs ``(b, g, *shape)``, logits ``(b, g, C)``."""

    def __init__(
        self, architecture: str, members: int, shape: tuple[int, ...], classes: int, seed: int
    ) -> None:
        super().__init__()
        channels, height, width = shape
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            build = ARCHITECTURES[architecture]
            self.network = build(members, channels, (height, width), classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x.flatten(1, 2))
