"""Train all candidates at once: what augmentation really gains, for the price of a few runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.forecasting.training.grouped import Grouped
from augury.forecasting.training.members import Fold, Protocol, run_members, train_members


@dataclass(frozen=True)
class Curve:
    """Clean test accuracy and cross-entropy of each candidate and seed: ``(candidates, seeds)``."""

    accuracy: Tensor
    cross_entropy: Tensor


def train_together(
    train: Dataset,
    test: Dataset,
    candidates: Sequence[Augmentation],
    *,
    architecture: str = "cnn",
    seeds: int = 2,
    steps: int = 1200,
    batch: int = 64,
    rate: float = 0.003,
    decay: float = 0.005,
    seed: int = 0,
    device: torch.device,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Curve:
    """Train a network with each candidate, `seeds` times, and test it on clean examples.

    All candidates and seeds are members of one grouped network, so the cost is about that of one
    network of their joint size.
    """
    side = max(train.shape)  # as they are
    whole, protocol = (
        torch.arange(len(train)),
        Protocol(steps, batch, rate=rate, decay=decay, side=side),
    )
    folds = [Fold(whole, whole[:0], seed, k) for k in range(seeds)]
    members, classes = len(candidates) * seeds, len(train.classes or ())
    net = Grouped(architecture, members, train.shape, classes, seed).to(device)
    done = iter(range(1, steps + 1))
    train_members(net, train, protocol, candidates, folds, lambda: progress(next(done), steps))
    right, entropy = [], []
    for rows in torch.arange(len(test)).split(2000):
        out = run_members(net, test, [rows]).squeeze(0)
        y = test.y[rows].to(device).unsqueeze(1).expand(-1, members)
        right.append((out.argmax(-1) == y).float().sum(0))
        entropy.append(F.cross_entropy(out.transpose(1, 2), y, reduction="none").sum(0))
    totals = (torch.stack(parts).sum(0).cpu() / len(test) for parts in (right, entropy))
    accuracy, cross_entropy = (total.view(seeds, -1).T for total in totals)
    return Curve(accuracy, cross_entropy)
