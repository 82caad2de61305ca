"""Several networks of one architecture as a single network with grouped convolutions.

A GPU is idle with one small network and busy with a hundred. Members share no weight: member g
sees channels g·C to (g+1)·C of the input and gives row g of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from augury.forecasting.training.blocks import Blocks
from augury.forecasting.training.convolution import GroupedConv
from augury.forecasting.training.layers import GroupedLinear, Split
from augury.forecasting.training.series import fcn, small_series


class _RowNorm(nn.BatchNorm1d):
    """Batch norm of each member's features: ``(b, g, c)``."""

    def __init__(self, members: int, features: int) -> None:
        super().__init__(members * features)

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.flatten(1)).view_as(input)


class _Residual(nn.Module):
    def __init__(self, branch: nn.Module, skip: nn.Module) -> None:
        super().__init__()
        self.branch, self.skip = branch, skip

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.branch(x) + self.skip(x))


def _conv(
    g: int, inputs: int, outputs: int, size: int = 3, stride: int = 1, bias: bool = False
) -> nn.Conv2d:
    if stride == 1:
        return GroupedConv(g, inputs, outputs, size, bias=bias)
    return nn.Conv2d(g * inputs, g * outputs, size, stride, padding=size // 2, groups=g, bias=bias)


def lenet(g: int, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Two convolutions (6 and 16) and three dense layers (120, 84, classes)."""
    channels, height, width = shape
    return nn.Sequential(
        _conv(g, channels, 6, 5, bias=True),
        nn.MaxPool2d(2),
        nn.ReLU(),  # after pooling, which gives the same with less left to do
        _conv(g, 6, 16, 5, bias=True),
        nn.MaxPool2d(2),
        nn.ReLU(),
        Split(g),
        GroupedLinear(g, 16 * (height // 4) * (width // 4), 120),
        nn.ReLU(),
        GroupedLinear(g, 120, 84),
        nn.ReLU(),
        GroupedLinear(g, 84, classes),
    )


def small(g: int, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Three layers (16-32-64) with batch norm, for quick trials, on images, series or vectors."""
    if len(shape) == 1:
        layers: list[nn.Module] = [Split(g)]
        for inputs, outputs in ((shape[0], 64), (64, 64)):
            layers += [GroupedLinear(g, inputs, outputs), _RowNorm(g, outputs), nn.ReLU()]
        return nn.Sequential(*layers, GroupedLinear(g, 64, classes))
    if len(shape) == 2:
        return small_series(g, shape, classes)
    blocks = Blocks(g, shape[0], ((16, 2), (32, 2), (64, 1)), ceil=True)
    return nn.Sequential(blocks, Split(g), GroupedLinear(g, 64, classes))


def slim(g: int, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """`cnn` at less width (16-24-24-48-48), pooled after the first layer: a third of its work."""
    layers = ((16, 2), (24, 1), (24, 2), (48, 1), (48, 1))
    return nn.Sequential(
        Blocks(g, shape[0], layers, ceil=True), Split(g), GroupedLinear(g, 48, classes)
    )


def cnn(g: int, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Five 3×3 convolutions with batch norm (24-24-48-48-96), global max-pool."""
    pool = 2 if max(shape) <= 40 else 4
    blocks = Blocks(g, shape[0], ((24, 1), (24, pool), (48, 1), (48, 2), (96, 1)))
    return nn.Sequential(blocks, Split(g), GroupedLinear(g, 96, classes))


def resnet(g: int, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """A stem and three residual blocks (16, 32, 64) with batch norm, global mean."""
    layers: list[nn.Module] = [_conv(g, shape[0], 16), nn.BatchNorm2d(g * 16), nn.ReLU()]
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
        skip = nn.Identity() if stride == 1 else _conv(g, width, outputs, 1, stride, bias=True)
        layers.append(_Residual(branch, skip))
        width = outputs
    layers += [nn.AdaptiveAvgPool2d(1), Split(g), GroupedLinear(g, width, classes)]
    return nn.Sequential(*layers)


ARCHITECTURES: dict[str, Callable[[int, tuple[int, ...], int], nn.Sequential]] = {
    "small": small,
    "slim": slim,
    "lenet": lenet,
    "cnn": cnn,
    "resnet": resnet,
    "fcn": fcn,
}


RATES = {
    "small": 0.01, "slim": 0.005, "lenet": 0.002, "cnn": 0.003, "resnet": 0.003, "fcn": 0.003
}  # fmt: skip
"""The peak learning rate that suits each architecture."""


class Grouped(nn.Module):
    """`members` networks of one architecture: inputs ``(b, g, *shape)``, outputs ``(b, g, C)``."""

    def __init__(
        self, architecture: str, members: int, shape: tuple[int, ...], classes: int, seed: int
    ) -> None:
        super().__init__()
        self.architecture, self.members = architecture, members
        self.shape, self.classes = shape, classes
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = ARCHITECTURES[architecture](members, shape, classes)

    @classmethod
    def joined(cls, parts: Sequence[Grouped]) -> Grouped:
        """Make one network of all members of several, with their weights."""
        first, members = parts[0], sum(part.members for part in parts)
        out = cls(first.architecture, members, first.shape, first.classes, 0)
        theirs = zip(*(part.parameters() for part in parts), strict=True)
        with torch.no_grad():
            for own, tensors in zip(out.parameters(), theirs, strict=True):
                torch.cat(tensors, out=own)
        return out

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x.flatten(1, 2))
