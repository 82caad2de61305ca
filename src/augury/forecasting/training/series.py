"""Networks for series: convolutions along time, many networks at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from augury.forecasting.training.convolution import GroupedConv
from augury.forecasting.training.layers import GroupedLinear, Split


class _Row(nn.Module):
    """A series as an image of one row, ``(b, g·c, length)`` to ``(b, g·c, 1, length)``."""

    def forward(self, x: Tensor) -> Tensor:
        return x.unsqueeze(2).contiguous(memory_format=torch.channels_last)


class _Mean(nn.Module):
    """The mean of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


def series_layers(
    g: int, channels: int, classes: int, layers: tuple[tuple[int, int, int], ...]
) -> nn.Sequential:
    """Return convolutions along time with batch norm, then the mean over time.

    Parameters
    ----------
    g, channels, classes
        Members, and what each takes and returns.
    layers
        Outputs, kernel size and pooling of each convolution.
    """
    parts: list[nn.Module] = [_Row()]
    for outputs, size, pool in layers:
        parts += [
            GroupedConv(g, channels, outputs, (1, size), bias=False),
            nn.BatchNorm2d(g * outputs),
            nn.ReLU(),
        ]
        if pool > 1:
            parts.append(nn.MaxPool2d((1, pool), ceil_mode=True))
        channels = outputs
    return nn.Sequential(*parts, _Mean(), Split(g), GroupedLinear(g, channels, classes))


def fcn(g: int, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """The fully convolutional network of Wang et al. (2017) at half width (64-128-64)."""
    return series_layers(g, shape[0], classes, ((64, 9, 1), (128, 5, 1), (64, 3, 1)))


def small_series(g: int, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Three layers (16-32-64) with pooling between them, for quick trials."""
    return series_layers(g, shape[0], classes, ((16, 9, 2), (32, 5, 2), (64, 3, 1)))
