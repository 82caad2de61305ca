"""Feature maps that learn nothing: the input itself, and a layer of a network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.text import nearest
from augury.features.base import FeatureMap


class Flatten(FeatureMap):
    """φ(x) = x as one vector: the linear kernel."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    def describe(self) -> str:
        return "pixels as they are"


class _Reached(Exception):  # not an error: it ends the forward pass early
    """Raised inside a forward pass once the wanted layer has spoken, to skip the rest."""


class Layer(FeatureMap):
    """The output of a named layer of a network, flattened; the network is left in eval mode.

    Parameters
    ----------
    model
        Any module that takes a batch of inputs.
    name
        The layer's path, as in ``model.named_modules()``, for example ``"layer2.0.conv1"``.
    """

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        modules = dict(model.named_modules())
        if not name or name not in modules:
            known = [m for m in modules if m]
            near = nearest(name, known, 3, 0.3) or known[:8]
            raise AuguryError(f"the network has no layer {name!r}; near names: {', '.join(near)}")
        self.model = model.eval()
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        caught: list[Any] = []

        def catch(module: nn.Module, args: Any, output: Any) -> None:
            caught.append(output)
            raise _Reached

        handle = self.model.get_submodule(self.name).register_forward_hook(catch)
        try:
            self.model(x)
        except _Reached:
            pass
        except RuntimeError as error:
            raise AuguryError(
                f"{type(self.model).__name__} cannot take a batch of shape {tuple(x.shape)} "
                f"({str(error).splitlines()[0]}); give a network made for this data"
            ) from error
        finally:
            handle.remove()
        if not caught:
            raise AuguryError(f"the layer {self.name!r} was not used in the network's forward pass")
        if not isinstance(caught[0], torch.Tensor):
            raise AuguryError(
                f"the layer {self.name!r} gives a {type(caught[0]).__name__}, not a tensor; "
                "choose a layer with one tensor as output"
            )
        return caught[0].flatten(1)

    def train(self, mode: bool = True) -> Layer:
        """Stay in eval mode: features must not depend on the rest of a batch."""
        return super().train(False)

    def describe(self) -> str:
        return f"layer {self.name} of {type(self.model).__name__}"
