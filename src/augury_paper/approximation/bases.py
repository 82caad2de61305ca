"""The two base models: Fourier features, which do not train, and LeNet, which does."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from augury.data.dataset import Dataset
from augury.features import FourierFeatures
from augury_paper.networks import LeNets, lenet, seeded
from augury_paper.settings import Settings

_MODELS = 5  # one for each objective; the last sees no views


class Base(nn.Module):
    """Models of one kind, one for each objective and trial, that train together.

    The models of a trial start alike.
    """

    trials: int

    @abstractmethod
    def forward(self, views: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs of views ``(n·b, 4, trials, C)``, examples ``(b, 5, trials, C)``."""

    @abstractmethod
    def predict(self, x: Tensor) -> Tensor:
        """Return outputs of examples ``(b, 5, trials, C)``."""


class FourierBase(Base):
    """Linear heads on random Fourier features of the Gaussian kernel, γ chosen by alignment.

    Trials differ in frequencies and starting weights.
    """

    def __init__(self, data: Dataset, settings: Settings, device: torch.device) -> None:
        super().__init__()
        trials, features = settings.trials, settings.n_components
        self.trials, self.classes, self.size = trials, len(data.classes or ()), settings.size
        first = FourierFeatures(features, seed=0)
        sample = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:1000]
        x = data.batch(sample, device, torch.float32)
        first.fit(x, data.targets()[sample].to(device))
        self.gamma = first.gamma_ or 1.0
        self.maps = nn.ModuleList([first])
        for seed in range(1, trials):
            other = FourierFeatures(features, gamma=self.gamma, seed=seed)
            other.draw(data.shape, self.gamma)
            self.maps.append(other.to(device, torch.float32))
        start = torch.rand(
            trials, features, 1, self.classes, generator=torch.Generator().manual_seed(0)
        )
        start = (2 * start - 1) / features**0.5  # as torch starts a linear layer
        self.weight = nn.Parameter(start.expand(-1, -1, _MODELS, -1).flatten(2).to(device))

    def forward(self, views: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        out = self.predict(torch.cat([views, x]))
        return out[: len(views), : _MODELS - 1], out[len(views) :]

    def predict(self, x: Tensor) -> Tensor:
        each = []
        for phi, weight in zip(self.maps, self.weight.unbind(), strict=True):
            with torch.no_grad():
                features = phi(x).mul_(self.size)
            each.append(features @ weight)
        return torch.stack(each, 1).unflatten(-1, (_MODELS, self.classes)).transpose(1, 2)


class LeNetBase(Base):
    """LeNets: φ is the last hidden layer, which trains, and the head is the last layer.

    Trials differ in starting weights. On a GPU all but the head works in bfloat16.
    """

    def __init__(self, data: Dataset, trials: int, device: torch.device) -> None:
        super().__init__()
        self.trials, classes = trials, len(data.classes or ())
        channels, side = data.shape[:2]
        members = [seeded(lambda: lenet(channels, side, classes), k) for k in range(trials)]
        dense = device.type == "cuda"
        self.averaged = LeNets.of(members * (_MODELS - 1), dense=dense).to(device)
        self.plain = LeNets.of(members, dense=dense).to(device)

    def forward(self, views: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        out = self._run(self.averaged, torch.cat([views, x]))
        plain = self._run(self.plain, x)
        return out[: len(views)], torch.cat([out[len(views) :], plain], 1)

    def predict(self, x: Tensor) -> Tensor:
        return torch.cat([self._run(self.averaged, x), self._run(self.plain, x)], 1)

    def _run(self, network: LeNets, x: Tensor) -> Tensor:
        *body, head = network
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
            for layer in body:
                x = layer(x)
        if x.is_cuda:
            x = x.float()
        return head(x).unflatten(1, (-1, self.trials))
