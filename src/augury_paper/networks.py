"""The paper's networks, LeNet and a residual network, and many LeNets trained as one.

A GPU is idle with one LeNet. Members of `LeNets` see the same images in the same order and share
no weight, so that training them on the sum of their losses is training each on its own.

The trials of `augury rank` train other networks together, in `forecasting.training.grouped`; the
dense layers of `LeNets` come from there. Its convolutions are its own, for three reasons: members
see the same images, so that the first convolution is one for all and is not repeated; layers keep
examples as rows, so that `augury.Averaging` can cut them; and a convolution in groups of six
channels leaves a GPU's tensor cores idle, where dense products use them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augury.forecasting.training.grouped import GroupedLinear
from augury.objectives import Loss, multinomial
from augury_paper.largest import largest

_Network = TypeVar("_Network", bound=nn.Module)

LAYERS = ("input", "pool1", "pool2", "relu3", "relu4")
"""LeNet's layers 0 to 4: nothing yet, the first and the second convolution, two dense layers."""


def seeded(build: Callable[[], _Network], seed: int) -> _Network:
    """Build a network whose weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def lenet(channels: int = 1, side: int = 28, classes: int = 10) -> nn.Sequential:
    """Two convolutions (6 and 16 channels) and three dense layers (120, 84, classes)."""
    end = ((side // 2) - 4) // 2
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(channels, 6, 5, padding=2),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(6, 16, 5),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flat=nn.Flatten(),
            fc1=nn.Linear(16 * end * end, 120),
            relu3=nn.ReLU(),
            fc2=nn.Linear(120, 84),
            relu4=nn.ReLU(),
            fc3=nn.Linear(84, classes),
        )
    )


def multiply_adds(channels: int = 1, side: int = 28, classes: int = 10) -> tuple[int, ...]:
    """Return the multiply-adds of LeNet's five layers for one image."""
    half = side // 2 - 4
    end = half // 2
    return (
        side * side * 6 * channels * 25,
        half * half * 16 * 6 * 25,
        16 * end * end * 120,
        120 * 84,
        84 * classes,
    )


class LeNets(nn.Sequential):
    """Several LeNets on the same images: ``(b, C, H, W)`` to ``(b, members, classes)``.

    The layers that can be averaged at have `lenet`'s names, and rows for examples.
    """

    @classmethod
    def of(cls, networks: Sequence[nn.Sequential], *, dense: bool = False) -> Self:
        """Join networks made by `lenet`; their weights are copied.

        Parameters
        ----------
        networks
            The members.
        dense
            Work as suits tensor cores: the first convolution as a product with windows of the
            image, the second with a dense matrix, and pooling as the largest of four values side
            by side. There are up to eight times the multiplications, and they take less time than
            moving what they work on; kernels for groups of six channels are far slower. The
            images' side must be a multiple of four.
        """
        found = {
            key: torch.stack([net.get_parameter(key).detach() for net in networks])
            for key, _ in networks[0].named_parameters()
        }
        members, channels = len(networks), found["conv1.weight"].shape[2]
        ends = {
            name: seeded(partial(GroupedLinear, members, *found[f"{name}.weight"].mT.shape[1:]), 0)
            for name in ("fc1", "fc2", "fc3")
        }
        layers = OrderedDict[str, nn.Module](
            conv1=_SharedConvolution(members * 6, channels, dense),
            pool1=_SharedPool(members * 6, dense),
            conv2=_Convolutions(members, 6, 16, dense),
            pool2=_Pools(members, 16, dense),
            fc1=ends["fc1"],
            relu3=nn.ReLU(),
            fc2=ends["fc2"],
            relu4=nn.ReLU(),
            fc3=ends["fc3"],
        )
        joined = cls(layers)
        with torch.no_grad():
            own = dict(joined.named_parameters())
            own["conv1.weight"].copy_(found["conv1.weight"].flatten(0, 1))
            own["pool1.bias"].copy_(found["conv1.bias"].flatten())
            own["conv2.weight"].copy_(found["conv2.weight"])
            own["pool2.bias"].copy_(found["conv2.bias"])
            for name in ends:
                own[f"{name}.weight"].copy_(found[f"{name}.weight"].mT)
                own[f"{name}.bias"].copy_(found[f"{name}.bias"].unsqueeze(1))
        return joined


class _SharedConvolution(nn.Module):
    """The first convolution of all members, one for all since they see the same images.

    Gives ``(b, outputs, s, s)``, or densely ``(b, s/2, s/2, 4, outputs)``: the four values that
    are then pooled side by side.
    """

    def __init__(self, outputs: int, channels: int, dense: bool) -> None:
        super().__init__()
        self.dense = dense
        self.weight = nn.Parameter(torch.empty(outputs, channels, 5, 5))

    def forward(self, x: Tensor) -> Tensor:
        if not self.dense:
            return F.conv2d(x, self.weight, padding=2)
        b, end = len(x), x.shape[-1] // 2
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))  # before it is spread out
        # A pooled pixel sees a window of 6 by 6; of 8 columns, since words of 16 bytes move faster.
        windows = F.pad(x, (2, 4, 2, 2)).unfold(2, 6, 2).unfold(3, 8, 2)
        rows = windows.permute(0, 2, 3, 1, 4, 5).reshape(b, end * end, -1)
        places = [F.pad(self.weight, (j, 3 - j, i, 1 - i)) for i in (0, 1) for j in (0, 1)]
        matrix = torch.stack(places).flatten(2).flatten(0, 1).mT
        # a product for each example, so that the weights' gradient is a sum of many in parallel
        return torch.bmm(rows, matrix.expand(b, -1, -1)).view(b, end, end, 4, -1)


class _SharedPool(nn.Module):
    """Pool, then bias and ReLU: the same as after them, on a quarter of the values."""

    def __init__(self, channels: int, dense: bool) -> None:
        super().__init__()
        self.dense = dense
        self.bias = nn.Parameter(torch.empty(channels))

    def forward(self, x: Tensor) -> Tensor:
        bias = self.bias.to(x.dtype)
        if self.dense:
            return torch.relu(largest(x) + bias).permute(0, 3, 1, 2)
        return torch.relu(F.max_pool2d(x, 2) + bias.view(-1, 1, 1))


class _Convolutions(nn.Module):
    """A convolution for each member, of ``(b, members · inputs, s, s)``.

    Gives ``(members, b, outputs, s − 4, s − 4)``, or densely ``(members, b, 4, outputs · e²)``
    for e = (s − 4)/2: the four values that are then pooled side by side.
    """

    def __init__(self, members: int, inputs: int, outputs: int, dense: bool) -> None:
        super().__init__()
        self.dense = dense
        self.weight = nn.Parameter(torch.empty(members, outputs, inputs, 5, 5))

    def forward(self, x: Tensor) -> Tensor:
        members, outputs, inputs = self.weight.shape[:3]
        if not self.dense:
            out = F.conv2d(x, self.weight.flatten(0, 1), groups=members)
            return out.unflatten(1, (members, outputs)).transpose(0, 1)
        b, side = len(x), x.shape[-1]
        rows = x.unflatten(1, (members, inputs)).permute(1, 0, 3, 4, 2).reshape(members, b, -1)
        out = torch.bmm(rows, dense_convolution(self.weight.to(x.dtype), side))
        return out.unflatten(2, (4, -1))


def dense_convolution(weight: Tensor, side: int) -> Tensor:
    """Return convolutions as matrices ``(members, side² · inputs, 4 · outputs · e²)``.

    Inputs are ordered by row, column and channel; outputs by place in the square of four that is
    pooled, channel, and row and column of the square, of which there are e = (side − k + 1)/2.

    Parameters
    ----------
    weight
        ``(members, outputs, inputs, k, k)``.
    side
        Of the images.
    """
    members, outputs, inputs, k = weight.shape[:4]
    end = (side - k + 1) // 2
    shape = (members, side, side, inputs, 2, 2, outputs, end, end)
    zeros = torch.zeros(shape, dtype=weight.dtype, device=weight.device)
    m, y, x, c, p, q, o, v, u = zeros.stride()
    # weight[o, c, i, j] stands wherever output (2v + p, 2u + q) meets input (2v + p + i, …)
    size = (*weight.shape, 2, 2, end, end)
    stride = (m, o, c, y, x, y + p, x + q, 2 * y + v, 2 * x + u)
    spread = weight[..., None, None, None, None].expand(size)
    dense = torch.as_strided_scatter(zeros, spread, size, stride)
    return dense.view(members, side * side * inputs, 4 * outputs * end * end)


class _Pools(nn.Module):
    """Pool, bias and ReLU of each member: members first to ``(b, members, features)``."""

    def __init__(self, members: int, channels: int, dense: bool) -> None:
        super().__init__()
        self.dense = dense
        self.bias = nn.Parameter(torch.empty(members, channels))

    def forward(self, x: Tensor) -> Tensor:
        if self.dense:
            out = largest(x).unflatten(2, (self.bias.shape[1], -1))
        else:
            out = F.max_pool2d(x.flatten(0, 1), 2).unflatten(0, x.shape[:2]).flatten(3)
        bias = self.bias[:, None, :, None].to(x.dtype)
        return torch.relu(out + bias).flatten(2).transpose(0, 1)


@dataclass(frozen=True)
class SummedLoss(Loss):
    """The sum of members' multinomial losses, for outputs ``(b, members, C)`` and classes ``(b,)``.

    Its Hessian has a block for each member and nothing between them.
    """

    smoothness = 0.5

    def __call__(self, output: Tensor, y: Tensor) -> Tensor:
        return multinomial(output, y.unsqueeze(1).expand(output.shape[:-1])).sum(1)

    def curvature(self, output: Tensor, delta: Tensor, y: Tensor | None = None) -> Tensor:
        return multinomial.curvature(output, delta).sum(1)


class _Unit(nn.Module):
    """A residual unit with batch norm and ReLU before each convolution (He et al., 2016b)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.skip = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        ready = F.relu(self.bn1(x))
        out = self.conv2(F.relu(self.bn2(self.conv1(ready))))
        return out + (x if self.skip is None else self.skip(ready))


class BlocksOfUnits(nn.Module):
    """The paper's ResNet: a convolution, three blocks of units, a global average pool."""

    def __init__(self, units: int = 9, channels: int = 3, classes: int = 10) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        width = 16
        blocks = []
        for outputs in (16, 32, 64):
            stride = 1 if outputs == 16 else 2
            rest = [_Unit(outputs, outputs, 1) for _ in range(units - 1)]
            blocks.append(nn.Sequential(_Unit(width, outputs, stride), *rest))
            width = outputs
        self.block1, self.block2, self.block3 = blocks
        self.bn, self.pool = nn.BatchNorm2d(64), nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.block3(self.block2(self.block1(self.conv(x))))
        return self.fc(self.pool(F.relu(self.bn(x))).flatten(1))
