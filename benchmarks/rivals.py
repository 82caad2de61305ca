"""What else one could rank augmentations by, before training: each gives a number a candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations import Augmentation, identity
from augury.data import Dataset
from augury.forecasting.training import train_together
from augury.forecasting.training.grouped import Grouped
from augury.forecasting.training.members import Fold, Protocol, train_members

Rival = Callable[[Dataset, Sequence[Augmentation], int, torch.device], Tensor]


def pixel_distance(
    data: Dataset, candidates: Sequence[Augmentation], seed: int, device: torch.device
) -> Tensor:
    """How little the versions differ from their originals: minus the mean squared difference."""
    index = torch.arange(min(len(data), 1000))
    x = data.batch(index, device, torch.float32)
    rng = Rng(seed, index.to(device))
    return torch.stack([-(a.views(x, 4, rng) - x).square().mean() for a in candidates]).cpu()


def affinity(
    data: Dataset, candidates: Sequence[Augmentation], seed: int, device: torch.device
) -> Tensor:
    """Accuracy on augmented held-out examples of a network trained without augmentation."""
    protocol = Protocol(folds=1, held=1000)
    fold = Fold.of(data, protocol, seed, 0)
    net = Grouped("small", 1, protocol.seen(data.shape), len(data.classes or ()), seed).to(device)
    train_members(net, data, protocol, [identity()], [fold])
    x = data.batch(fold.held, device, torch.float32)
    y = data.y[fold.held].to(device)
    rng = Rng(seed, fold.held.to(device))
    found = []
    with torch.no_grad():
        for a in candidates:
            right = [
                (net(part.unsqueeze(1))[:, 0].argmax(-1) == target).float().mean()
                for view in a.views(x, 2, rng)
                for part, target in zip(view.split(500), y.split(500), strict=True)
            ]
            found.append(torch.stack(right).mean())
    return torch.stack(found).cpu()


def lenet_epoch(
    data: Dataset, candidates: Sequence[Augmentation], seed: int, device: torch.device
) -> Tensor:
    """Held-out accuracy of a LeNet trained with each candidate for one epoch."""
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))
    cut = int(0.8 * len(data))
    parts = [
        Dataset(data.x[rows], data.y[rows], data.classes) for rows in (order[:cut], order[cut:])
    ]
    steps = max(2, cut // 64)
    curve = train_together(
        *parts, candidates, architecture="lenet", seeds=1, steps=steps, rate=0.002, device=device
    )
    return curve.accuracy[:, 0]


RIVALS: dict[str, Rival] = {
    "pixel distance": pixel_distance,
    "affinity": affinity,
    "one epoch of LeNet": lenet_epoch,
}
