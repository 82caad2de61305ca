"""A trial: small networks really trained with each candidate, as many epochs as are planned.

Closed forms judge a candidate by what a fixed feature map can do with it; a network learns its
features, and gains most from what they could not know. So a trial trains: every candidate of a
fold starts from the same weights and sees the same examples in the same order, and is judged on
clean examples that were held out. Training without augmentation is repeated from several starts,
since every gain is measured against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.errors import AuguryError
from augury.augmentations.base import Augmentation
from augury.cluster import Journal, Workers
from augury.data.dataset import Dataset
from augury.forecasting.splits import grouped_split
from augury.forecasting.training.grouped import RATES
from augury.forecasting.training.members import Fold, Schedule, member_loss
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.training.runners import OneByOne, OwnRunner, Runner, Together
from augury.forecasting.training.spectrogram import count_views
from augury.statistics.precision import average_precision
from augury.statistics.temperature import calibrated_log_loss

_HELD, _LEAST_HELD, _MOST_HELD = 6, 1000, 2500  # held-out examples: times those trained on
_REPLICA = 100  # replicas of fold k have numbers k + 100, k + 200, …


@dataclass(frozen=True)
class Trial:
    """What a trial does: a stated amount of work, so that the same trial gives the same result.

    Attributes
    ----------
    epochs
        As many as the planned training has.
    examples
        How many each fold trains on.
    folds
        How often each candidate is trained, on other examples and from other weights.
    network
        The architecture.
    replicas
        How often training without augmentation is repeated in each fold.
    held
        At most so many examples are held out to judge by.
    side
        Larger images are shrunk to this side first, and longer series to this length.
    batch
        Examples per step.
    """

    epochs: int
    examples: int = 1000
    folds: int = 2
    network: str = "small"
    replicas: int = 3
    held: int = _MOST_HELD
    side: int = 32
    batch: int = 64

    @staticmethod
    def held_for(examples: int) -> int:
        """Return how many examples at most are held out where so many are trained on."""
        return min(_MOST_HELD, max(_LEAST_HELD, _HELD * examples))

    def passes(self, candidates: int) -> int:
        """Return how many examples are seen in training, over all networks."""
        half = 0.5 * self.replicas  # the learning curve's lower point
        return round(self.epochs * self.examples * self.folds * (candidates + self.replicas + half))


@dataclass(frozen=True)
class HeldOut:
    """What one fold showed on its held-out examples; column 0 is no augmentation.

    Attributes
    ----------
    index
        ``(m,)``: the examples.
    losses
        ``(m, 1 + candidates)``: log-losses after temperature scaling, or squared errors.
    right
        ``(m, 1 + candidates)``: whether the prediction was right, averaged over replicas; the
        average precision where examples have several labels, and zeros for a real-valued target.
    replicas
        ``(replicas,)``: the score of each repetition without augmentation.
    half
        The same, trained on half of the examples; empty where that was not asked for.
    """

    index: Tensor
    losses: Tensor
    right: Tensor
    replicas: Tensor
    half: Tensor

    def choose(self, columns: Tensor) -> HeldOut:
        """Return the same of some columns only."""
        return replace(self, losses=self.losses[:, columns], right=self.right[:, columns])


def shrink(
    data: Dataset, candidates: Sequence[Augmentation], side: int
) -> tuple[Dataset, list[Augmentation]]:
    """Shrink images to `side`, and candidates with them, so that both fit as they did before.

    Series are averaged down to that length; their augmentations are measured in shares of it.
    """
    if data.kind == "series" and data.shape[1] > side:
        rows = data.x.to(torch.float32).unsqueeze(2)
        short = F.interpolate(rows, (1, side), mode="bilinear", antialias=True)
        return replace(data, x=short.squeeze(2)), list(candidates)
    if data.kind != "image" or max(data.shape[1:]) <= side:
        return data, list(candidates)
    factor = side / max(data.shape[1:])
    size = [max(4, round(length * factor)) for length in data.shape[1:]]
    parts = []
    for rows in torch.arange(len(data)).split(4096):
        x = data.batch(rows, torch.device("cpu"), torch.float32)
        x = F.interpolate(x, size, mode="bilinear", antialias=True)
        parts.append((x.clamp(0, 1) * 255).round().to(torch.uint8))
    return replace(data, x=torch.cat(parts)), [c.at_scale(factor) for c in candidates]


def stratified_order(data: Dataset, seed: int) -> Tensor:
    """Return a random order of the examples in which every stretch has each class in proportion."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(data), generator=generator)
    if data.classes is None:
        return order
    place = torch.empty(len(data), dtype=torch.float64)
    jitter = torch.rand(len(data), generator=generator, dtype=torch.float64)
    for c in range(len(data.classes)):
        own = order[data.y[order] == c]
        place[own] = (torch.arange(len(own), dtype=torch.float64) + jitter[own]) / max(1, len(own))
    return place.argsort()


def make_fold(data: Dataset, trial: Trial, seed: int, number: int) -> Fold:
    """Choose the examples that a fold trains on, others in each fold, and those it is judged by."""
    size = min(trial.examples, len(data) * 3 // 4)
    if size < 2 or len(data) - size < 2:
        raise AuguryError(f"a trial needs at least 5 examples, but there are {len(data)}")
    order = stratified_order(data, seed)
    if data.groups is not None:
        train, held = grouped_split(data, order, trial.folds, seed, number)
        return Fold(train[:size], held[: trial.held], seed, number)
    step = size if size * trial.folds <= len(data) else max(1, len(data) // trial.folds)
    order = order.roll(-number * step)
    return Fold(order[:size], order[size:][: trial.held], seed, number)


def run_folds(
    data: Dataset,
    candidates: Sequence[Augmentation],
    trial: Trial,
    numbers: Sequence[int],
    *,
    seed: int,
    device: torch.device,
    tick: Callable[[str], None] = lambda now: None,
    curve: bool = True,
    own: OwnNetwork | None = None,
    workers: Workers | None = None,
    journal: Journal | None = None,
) -> list[HeldOut]:
    """Train all candidates, and no augmentation for comparison, on some folds, and judge them.

    With `curve`, no augmentation is also trained on half of the examples, for a learning curve.
    With `own`, that network is trained instead of the trial's. With `workers` of a cluster each
    network is a job, or on a GPU all of a fold; a `journal` keeps those that are finished.
    Costs folds × (candidates + 1.5 × replicas) × epochs × examples passes through the network.
    """
    folds = [make_fold(data, trial, seed, number) for number in numbers]
    rate = own.rate if own else RATES[trial.network]
    views = None if own else count_views(data, device)
    schedule = Schedule(trial.epochs, trial.batch, rate, views=views)
    clean = [
        replace(fold, number=fold.number + _REPLICA * (r + 1))
        for fold in folds
        for r in range(trial.replicas)
    ]
    fewer = [replace(f, train=f.train[: max(2, len(f.train) // 2)]) for f in clean]
    kind: type[Runner] = Together if device.type == "cuda" else OneByOne
    runner = (kind if own is None else OwnRunner)(
        own or trial.network, data, schedule, device, tick,
        workers or Workers(), journal or Journal(),
    )  # fmt: skip
    tried, plain = runner.run(list(candidates), folds, clean)
    half = runner.run([], [], fewer)[1] if curve else [p[:, :0] for p in plain]
    found = []
    for k, fold in enumerate(folds):
        mine = slice(k * trial.replicas, (k + 1) * trial.replicas)
        y = data.y[fold.held].to(device)
        parts = [*plain[mine], *([tried[k]] if candidates else [])]
        found.append(
            summarise(fold, torch.cat(parts, 1), torch.cat(half[mine], 1), y, trial.replicas, data)
        )
    return found


def ticks(trial: Trial, candidates: int, device: torch.device, own: bool = False) -> int:
    """Return how often `tick` is called while a whole trial is run."""
    if device.type == "cuda" and not own:
        return 2
    return trial.folds * (candidates + 2 * trial.replicas)


def summarise(
    fold: Fold, out: Tensor, half: Tensor, y: Tensor, replicas: int, data: Dataset
) -> HeldOut:
    """Judge a fold's members, the first `replicas` of which had no augmentation."""
    classes = data.classes is not None
    losses, right = _judge(out, y, classes)
    joined = [
        torch.cat([t[:, :replicas].mean(1, keepdim=True), t[:, replicas:]], 1).double().cpu()
        for t in (losses, right)
    ]
    scores = _scores(losses[:, :replicas], right[:, :replicas], classes, y)
    halves = _scores(*_judge(half, y, classes), classes, y)
    return HeldOut(fold.held, joined[0], joined[1], scores.double().cpu(), halves.double().cpu())


def _judge(out: Tensor, y: Tensor, classes: bool) -> tuple[Tensor, Tensor]:
    """Return losses and whether predictions are right, both ``(examples, members)``.

    Log-losses are taken after one temperature for each member has been fitted, so that it is not
    confidence that is judged but what is known. Members without an error would get none at all, and
    could not be told apart: see `_without_error`. A member that has diverged knows nothing: what is
    not a finite number counts as 0, which is chance, or the mean of a real target.
    """
    out = out.nan_to_num(0.0, 0.0, 0.0)
    if y.dim() == 2:
        every = y.unsqueeze(1).expand(-1, out.shape[1], -1)
        return member_loss(out, every, classes), average_precision(out, every)
    if not classes:
        losses = member_loss(out, y.unsqueeze(1).expand(-1, out.shape[1]), classes)
        return losses, losses.new_zeros(losses.shape)
    right = out.argmax(-1) == y.unsqueeze(1)
    losses = torch.where(right.all(0), _without_error(out, y), calibrated_log_loss(out, y))
    return losses, right.to(out)


def _without_error(out: Tensor, y: Tensor) -> Tensor:
    """Return log-losses of members that were right about all n examples: ``(examples, members)``.

    No temperature can be fitted to these, so their own losses, l on average, are kept in order but
    brought below L = log(1 + 1/n), the loss at a confidence of n/(n + 1), as l → l L / (l + L).
    """
    own = member_loss(out, y.unsqueeze(1).expand(-1, out.shape[1]), classes=True)
    least = math.log1p(1 / len(y))
    return own * least / (own.mean(0) + least)


def _scores(losses: Tensor, right: Tensor, classes: bool, y: Tensor) -> Tensor:
    """Return each member's accuracy, average precision or share of the variance explained."""
    if classes or y.dim() == 2:
        return right.mean(0)
    return 1 - losses.mean(0) / y.var().clamp_min(1e-12)
