"""Gradient features: the empirical neural tangent kernel (Jacot et al., 2018) of any network."""

from __future__ import annotations

import copy
import math
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from augury._base.errors import AuguryError
from augury._base.given import as_seed, as_whole, check_kind
from augury._base.text import kind_of
from augury.features.base import FeatureMap, check_sample
from augury.features.exact import exact_convolutions
from augury.features.patches import shrink

_NUMBERS = {"cpu": 2**22, "cuda": 2**28}  # in flight: gradients and what they are made from
_CALIBRATION = 2**25  # numbers that the batch norms may see at once: 256 images of 28 × 28


class GradientFeatures(FeatureMap):
    """φ(x) = S ∇_θ vᵀf(x; θ): how each parameter of a network would move its output.

    Training a wide network is regression on these features, so they know what a network of this
    architecture finds easy before it is trained. v is a random direction of the outputs and S a
    count sketch (Charikar et al., 2002): each parameter is added, with a random sign, to one of d
    features, which keeps inner products in the mean. Each feature takes the same number of
    parameters, and a network with at most d of them is not sketched. Features are scaled so that
    E‖φ‖² = 1 over the sample.

    An example costs its gradient (about three forward passes) and O(P) for P parameters.

    Parameters
    ----------
    model
        Any module that maps a batch of inputs to a tensor, used as it is and in eval mode: batch
        norm with its stored statistics, no dropout. A copy is kept, so it is left alone. By
        default a small untrained network with batch norm that suits the data, its statistics
        taken from the sample.
    d
        Maximum number of features.
    seed
        Random seed of the direction, the sketch and the default network.
    """

    def __init__(self, model: nn.Module | None = None, d: int = 4096, *, seed: int = 0) -> None:
        super().__init__()
        seed = as_seed(seed)
        if model is not None:
            check_kind("model", model, nn.Module, "a torch.nn.Module")
        if as_whole("d", d) < 1:
            raise AuguryError(f"the number of gradient features must be 1 or more, not {d}")
        if model is not None and not any(p.requires_grad for p in model.parameters()):
            raise AuguryError(
                f"{type(model).__name__} has no parameter to train, so it has no gradient "
                "features; set requires_grad on its parameters"
            )
        self.network = None if model is None else copy.deepcopy(model).eval()
        self.own, self.d, self.seed = model is None, d, seed
        for name in ("direction", "order", "signs", "scale"):
            self.register_buffer(name, None)

    @exact_convolutions
    def fit(self, x: Tensor, y: Tensor | None = None) -> Self:
        """Build the network where none was given, and draw the direction and the sketch."""
        check_sample(x, y)
        if self.own:
            self.network = default_network(tuple(x.shape[1:]), self.seed)
        assert self.network is not None
        self.network.to(x)
        if self.own and len(x) > 1:
            _calibrate(self.network, x)
        generator = torch.Generator().manual_seed(self.seed)
        outputs = self._outputs(x[:2])
        signs = _signs(outputs, generator)
        self.direction = (signs / math.sqrt(outputs)).to(x)
        size = sum(p.numel() for p in self._trainable().values())
        self.order = torch.randperm(size, generator=generator).to(x.device)
        self.signs = _signs(size, generator).to(x)
        self.scale = x.new_ones(())
        try:
            self(x[:2])
        except Exception as error:  # whatever a module of the user's may raise inside vmap
            raise AuguryError(
                f"the gradient of {type(self.network).__name__} cannot be taken example by "
                f"example ({_reason(error)}); use another feature map, such as 'patches'"
            ) from error
        self.scale = self(x).square().sum(1).mean().clamp_min(1e-30).rsqrt()
        return self

    @exact_convolutions
    def forward(self, x: Tensor) -> Tensor:
        if self.scale is None or self.network is None:
            raise AuguryError("these gradient features have no sketch yet: call fit first")
        network, parameters = self.network, self._trainable()
        fixed = {
            name: p.detach() for name, p in network.named_parameters() if name not in parameters
        }
        fixed |= dict(network.named_buffers())

        def output(parameters: dict[str, Tensor], example: Tensor) -> Tensor:
            out = functional_call(network, (parameters, fixed), (example.unsqueeze(0),))
            return out.flatten() @ self.direction

        gradients = vmap(grad(output), in_dims=(None, 0))
        numbers = len(self.order) + 64 * x[:1].numel()
        rows = max(1, _NUMBERS[x.device.type] // numbers)
        return torch.cat([self._sketch(gradients(parameters, part)) for part in x.split(rows)])

    def _sketch(self, gradients: dict[str, Tensor]) -> Tensor:
        """Add up permuted, signed parameters d apart: ``(b, P)`` to ``(b, min(d, P))``."""
        flat = torch.cat([g.flatten(1) for g in gradients.values()], 1)
        d = min(self.d, flat.shape[1])
        signed = flat.index_select(1, self.order) * (self.signs * self.scale)
        return F.pad(signed, (0, -signed.shape[1] % d)).unflatten(1, (-1, d)).sum(1)

    def _trainable(self) -> dict[str, Tensor]:
        assert self.network is not None
        named = self.network.named_parameters()
        return {name: p.detach() for name, p in named if p.requires_grad}

    def _outputs(self, x: Tensor) -> int:
        """Count the network's outputs, by running it as users do."""
        assert self.network is not None
        name = type(self.network).__name__
        try:
            with torch.no_grad():
                out = self.network(x)
        except Exception as error:  # whatever a module of the user's may raise
            raise AuguryError(
                f"{name} cannot take a batch of shape {tuple(x.shape)} ({_reason(error)}); "
                "use a network that accepts this data"
            ) from error
        if not isinstance(out, Tensor) or out.shape[:1] != x.shape[:1]:
            found: Any = tuple(out.shape) if isinstance(out, Tensor) else kind_of(out)
            raise AuguryError(
                f"{name} must give one tensor with a row for each of {len(x)} examples, not {found}"
            )
        return out[0].numel()

    def train(self, mode: bool = True) -> Self:
        """Stay in eval mode: features must not depend on the rest of a batch."""
        return super().train(False)

    def describe(self) -> str:
        name = "a small untrained network" if self.own else type(self.network).__name__
        d = self.d if self.order is None else min(self.d, len(self.order))
        return f"{d:,} gradient features of {name}"


def default_network(shape: tuple[int, ...], seed: int) -> nn.Sequential:
    """Return an untrained network with one output: convolutions, or dense layers for vectors.

    Five 3-wide convolutions with batch norm (24-24-48-48-96), two max-pools and a global one.
    """
    with torch.random.fork_rng(devices=[]):  # torch's initialisers know only the global generator
        torch.manual_seed(seed)
        if len(shape) == 1:
            return nn.Sequential(*_dense(shape[0], 128), *_dense(128, 128), nn.Linear(128, 1))
        image = len(shape) == 3
        conv, norm = (nn.Conv2d, nn.BatchNorm2d) if image else (nn.Conv1d, nn.BatchNorm1d)
        pool = nn.MaxPool2d if image else nn.MaxPool1d
        window = shrink(shape)
        layers: list[nn.Module] = [
            nn.AvgPool2d((window[0], window[1])) if image else nn.AvgPool1d(window[0])
        ]
        width, side = shape[0], min(s // w for s, w in zip(shape[1:], window, strict=True))
        for depth, block in enumerate(((24, 24), (48, 48), (96,))):
            if depth and side >= 4:
                layers.append(pool(2))
                side //= 2
            for outputs in block:
                layers += [conv(width, outputs, 3, padding=1), norm(outputs), nn.ReLU()]
                width = outputs
        return nn.Sequential(*layers, _GlobalMax(), nn.Linear(width, 1))


def _dense(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]


class _GlobalMax(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(2).amax(2)


@torch.no_grad()
def _calibrate(network: nn.Module, x: Tensor) -> None:
    """Set the statistics of each batch norm to those of a sample."""
    norms = [m for m in network.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    for norm in norms:
        norm.momentum = 1.0  # what is stored is this batch alone
    network.train()
    network(x[: max(2, _CALIBRATION // (160 * x[:1].numel()))])
    network.eval()


def _signs(size: int, generator: torch.Generator) -> Tensor:
    return torch.randint(2, (size,), generator=generator) * 2 - 1


def _reason(error: Exception) -> str:
    """Return the first sentence of what torch said."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].split(". ")[0].rstrip(".")[:160]
