"""Train all candidates at once: what augmentation really gains, for the price of a few runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.forecasting.training.grouped import RATES, Grouped
from augury.forecasting.training.members import Fold, Schedule, run_members, train_members
from augury.forecasting.training.spectrogram import front_end


@dataclass(frozen=True)
class Tested:
    """What networks did on clean test examples.

    Attributes
    ----------
    accuracy, cross_entropy
        Of each candidate and seed, ``(candidates, seeds)``.
    right
        Whether each example was predicted right, ``(examples, candidates, seeds)``.
    """

    accuracy: Tensor
    cross_entropy: Tensor
    right: Tensor


def train_together(
    train: Dataset,
    test: Dataset,
    candidates: Sequence[Augmentation],
    *,
    architecture: str = "cnn",
    seeds: int = 2,
    epochs: int = 40,
    batch: int = 64,
    decay: float = 0.005,
    seed: int = 0,
    device: torch.device,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tested:
    """Train a network with each candidate, `seeds` times, and test it on clean examples.

    All candidates and seeds are members of one grouped network, so the cost is about that of one
    network of their joint size.
    """
    schedule = Schedule(epochs, batch, RATES[architecture], decay)
    whole = torch.arange(len(train))
    folds = [Fold(whole, whole[:0], seed, k) for k in range(seeds)]
    members, classes = len(candidates) * seeds, len(train.classes or ())
    starts = [
        Grouped(architecture, 1, front_end(train).shape, classes, fold.start) for fold in folds
    ]
    net = Grouped.joined([start for start in starts for _ in candidates]).to(device)
    steps = schedule.steps(len(train))
    done = iter(range(1, steps + 1))
    train_members(net, train, schedule, candidates, folds, tick=lambda: progress(next(done), steps))
    right, entropy = [], []
    for rows in torch.arange(len(test)).split(2000):
        (out,) = run_members(net, test, [rows], [members])
        y = test.y[rows].to(device).unsqueeze(1).expand(-1, members)
        right.append(out.argmax(-1) == y)
        entropy.append(F.cross_entropy(out.transpose(1, 2), y, reduction="none"))
    each, losses = (
        torch.cat(parts).cpu().unflatten(1, (seeds, -1)).transpose(1, 2)
        for parts in (right, entropy)
    )
    return Tested(each.float().mean(0), losses.mean(0), each)
