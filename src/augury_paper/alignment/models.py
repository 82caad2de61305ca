"""The two models of Figure 2, trained with one transformation, all trials side by side."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.devices import tensor_cores
from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.features import FourierFeatures
from augury_paper.cells import Images
from augury_paper.networks import LeNets, lenet, seeded
from augury_paper.settings import Settings
from augury_paper.sgd import batch_order, learning_rates
from augury_paper.sgd import train as descend
from augury_paper.table1.descent import descend_together, waves
from augury_paper.views import FreshViews

Tick = Callable[[float], None]
_TESTS = 500


def frequencies(
    shape: tuple[int, ...], gamma: float, settings: Settings, device: torch.device
) -> Tensor:
    """Draw every trial's frequencies: ``(trials, pixels, d/2)``."""
    drawn = []
    for trial in range(settings.trials):
        phi = FourierFeatures(settings.n_components, gamma=gamma, seed=trial)
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

    Each trial has frequencies (see `frequencies`) and an order of its own, each epoch a view
    of every image. A step costs O(trials · batch · features · pixels).
    """
    train, test, trials = images.train, images.test, settings.trials
    views = FreshViews(train, augmentation, device)
    steps, calls = -(-len(train) // settings.batch_size), 0

    def make(index: Tensor) -> Tensor:
        nonlocal calls
        if calls % steps == 0:
            views.renew(calls // steps)
        calls += 1
        return waves(views[index].flatten(2), omega, settings)

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
    views, y = FreshViews(train, augmentation, device), train.y.to(device)
    order = batch_order(len(train), settings.batch_size, settings.epochs, 0, device)

    def predict(x: Tensor) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            return net(x).float()

    def loss(rows: Tensor, step: Tensor) -> Tensor:
        goal = y[rows].unsqueeze(1).expand(-1, settings.trials)
        out = predict(views[rows])
        # each network's own loss is the mean over the batch
        return F.cross_entropy(out.flatten(0, 1), goal.flatten(), reduction="sum") / len(rows)

    descend(
        net,
        loss,
        order,
        learning_rates(order, settings.learning_rate),
        epochs=settings.epochs,
        momentum=settings.momentum,
        begin=views.renew,
        tick=tick,
    )
    with torch.no_grad():
        return _accuracy(predict, images.test, settings.trials, device)


def _accuracy(
    predict: Callable[[Tensor], Tensor], test: Dataset, trials: int, device: torch.device
) -> list[float]:
    """Return the share of right classes for outputs ``(b, trials, C)``."""
    right = torch.zeros(trials, dtype=torch.float64, device=device)
    for part in torch.arange(len(test)).split(_TESTS):
        out = predict(test.batch(part, device, torch.float32))
        right += (out.argmax(-1) == test.y[part].to(device).unsqueeze(1)).sum(0)
    return (right / len(test)).tolist()
