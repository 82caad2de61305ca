"""The two models of Figure 2, trained with one transformation, all trials side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.devices import tensor_cores
from augury._base.pixels import to_bytes
from augury._base.rng import Rng
from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.features import FourierFeatures
from augury_paper.cells import Images
from augury_paper.networks import LeNets, lenet, seeded
from augury_paper.recorded import orders, recorded
from augury_paper.settings import Settings
from augury_paper.table1.descent import descend_together, waves

Tick = Callable[[float], None]
_ROWS, _TESTS = 4096, 500


@dataclass
class Versions:
    """A version of every image, as bytes in one place; new ones when `renew` is called."""

    data: Dataset
    augmentation: Augmentation
    device: torch.device
    epochs: int = 0
    x: Tensor = field(init=False)
    originals: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.originals = self.data.x.to(self.device)
        self.x = torch.empty_like(self.originals, dtype=torch.uint8)

    def renew(self) -> None:
        """Draw another version of every image, a function of its number and the epoch's alone."""
        number = torch.arange(len(self.x), device=self.device)
        for part in number.split(_ROWS):
            x = self.originals[part].float() / 255
            rng = Rng(0, part + self.epochs * len(self.x))
            version = self.augmentation.views(x, 1, rng)[0]
            self.x[part] = to_bytes(version)
        self.epochs += 1

    def __getitem__(self, index: Tensor) -> Tensor:
        return self.x[index].float() / 255


def frequencies(
    shape: tuple[int, ...], gamma: float, settings: Settings, device: torch.device
) -> Tensor:
    """Draw every trial's frequencies: ``(trials, pixels, d/2)``."""
    drawn = []
    for trial in range(settings.trials):
        phi = FourierFeatures(settings.features, gamma=gamma, seed=trial)
        phi.draw(shape, gamma)
        assert phi.frequencies is not None
        drawn.append(phi.frequencies.mT.to(device, torch.float32))
    return torch.stack(drawn)


def train_heads(
    images: Images,
    augmentation: Augmentation,
    omega: Tensor,
    settings: Settings,
    device: torch.device,
    tick: Tick,
) -> list[float]:
    """Train linear heads on Fourier features of augmented images; one accuracy a trial.

    Each trial has frequencies (see `frequencies`) and an order of its own, each epoch a version
    of every image. A step costs O(trials · batch · features · pixels).
    """
    train, test, trials = images.train, images.test, settings.trials
    versions = Versions(train, augmentation, device)
    steps, calls = -(-len(train) // settings.batch), 0

    def make(index: Tensor) -> Tensor:
        nonlocal calls
        if calls % steps == 0:
            versions.renew()
        calls += 1
        return waves(versions[index].flatten(2), omega, settings)

    with torch.no_grad(), tensor_cores(device.type == "cuda"):
        weight, bias = descend_together(make, train, range(trials), 1, settings, device, tick)

        def predict(x: Tensor) -> Tensor:
            flat = x.flatten(1)
            phi = waves(flat.expand(trials, *flat.shape), omega, settings)
            return torch.baddbmm(bias, phi, weight).transpose(0, 1)

        return _accuracy(predict, test, trials, device)


def train_lenets(
    images: Images,
    augmentation: Augmentation,
    settings: Settings,
    device: torch.device,
    tick: Tick,
) -> list[float]:
    """Train LeNets with an augmentation; one accuracy a trial.

    Trials differ in their starting weights, which are the same under every augmentation, as is
    the order of the images.
    """
    train, fast = images.train, device.type == "cuda"
    channels, side = train.shape[:2]
    classes = len(train.classes or ())
    members = [seeded(lambda: lenet(channels, side, classes), t) for t in range(settings.trials)]
    net = LeNets.of(members, dense=fast).to(device)
    optimizer = torch.optim.SGD(
        net.parameters(), settings.rate, momentum=settings.momentum, fused=fast
    )
    versions, y = Versions(train, augmentation, device), train.y.to(device)
    order = orders(len(train), settings.batch, settings.epochs, 0, device)
    counter = torch.zeros(1, dtype=torch.int64, device=device)
    per_epoch = len(order) // settings.epochs

    def predict(x: Tensor) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            return net(x).float()

    def step() -> None:
        rows = order.index_select(0, counter).squeeze(0)
        counter.add_(1)
        goal = y[rows].unsqueeze(1).expand(-1, settings.trials)
        out = predict(versions[rows])
        # each network's own loss is the mean over the batch
        loss = F.cross_entropy(out.flatten(0, 1), goal.flatten(), reduction="sum") / len(rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    versions.renew()
    run = recorded(step, optimizer, [*net.parameters(), counter], device)
    for done in range(len(order)):
        if done and done % per_epoch == 0:
            versions.renew()
        run()
        if done % 20 == 0:
            tick(done / len(order))
    with torch.no_grad():
        return _accuracy(predict, images.test, settings.trials, device)


def _accuracy(
    predict: Callable[[Tensor], Tensor], test: Dataset, trials: int, device: torch.device
) -> list[float]:
    """Give the share of right classes for outputs ``(b, trials, C)``."""
    right = torch.zeros(trials, dtype=torch.float64, device=device)
    for part in torch.arange(len(test)).split(_TESTS):
        out = predict(test.batch(part, device, torch.float32))
        right += (out.argmax(-1) == test.y[part].to(device).unsqueeze(1)).sum(0)
    return (right / len(test)).tolist()
