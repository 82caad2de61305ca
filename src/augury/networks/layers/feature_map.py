"""A layer of a network as a feature map."""

from __future__ import annotations

from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury.features.base import FeatureMap
from augury.networks.layers.find import INPUT, bad_batch, check_network, find_layer
from augury.networks.layers.read import read_layers


class Layer(FeatureMap):
    """The output of a named layer of a network, flattened; the network is put in eval mode.

    Parameters
    ----------
    network
        Any module that takes a batch of inputs.
    name
        The layer's path, as in ``network.named_modules()``, for example ``"layer2.0.conv1"``.
    """

    def __init__(self, network: nn.Module, name: str) -> None:
        super().__init__()
        check_network(network)
        if not (isinstance(name, str) and name == INPUT):
            find_layer(network, name)
        self.network = network.eval()
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        try:
            read_layers(self.network, x, [self.name], lambda name, output: seen.append(output))
        except AuguryError:
            raise
        except Exception as error:  # whatever a user's module may raise
            raise bad_batch(type(self.network).__name__, x, error) from error
        return seen[0].flatten(1)

    def train(self, mode: bool = True) -> Layer:
        """Stay in eval mode: features must not depend on the rest of a batch."""
        return super().train(False)

    def describe(self) -> str:
        return f"layer {self.name} of {type(self.network).__name__}"
