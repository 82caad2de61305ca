"""Training of many small networks at once, each with its own augmentation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.devices import has_bfloat16
from augury._base.rng import Rng
from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.forecasting.training.adamw import AdamW, one_cycle
from augury.forecasting.training.grouped import Grouped
from augury.forecasting.training.recorded import Recorded
from augury.forecasting.training.spectrogram import AsItIs, LogMel, front_end

_VIEWS = 16_000  # views that a candidate makes at a time: few large steps, as memory allows
_VIEWS_GPU = 8000  # the same where many candidates are trained at once
_VALUES = 1 << 26  # numbers in flight while it makes them
_LONG = 50  # steps that are worth a recording


@dataclass(frozen=True)
class Schedule:
    """How members train: AdamW with a one-cycle learning rate."""

    epochs: int
    batch: int = 64
    rate: float = 0.01
    decay: float = 0.005
    views: int | None = None
    """Views made of each example, seen in turn; None for a new one in each epoch."""

    def steps(self, examples: int) -> int:
        """Return the number of steps on so many examples; a last small batch is left out."""
        return self.epochs * max(1, examples // self.batch)


@dataclass(frozen=True)
class Fold:
    """Which examples members train on and which they are judged by.

    `seed` decides the views; with `number` it decides the first weights and the order of the
    examples. Folds of one seed see different views of the same example.
    """

    train: Tensor
    held: Tensor
    seed: int
    number: int = 0

    @property
    def start(self) -> int:
        """The seed of the weights it starts from, and of the order of its examples."""
        return (self.seed * 1000 + self.number) & 0x7FFF_FFFF_FFFF_FFFF  # as large as seeds may be


def train_members(
    net: Grouped,
    data: Dataset,
    schedule: Schedule,
    candidates: Sequence[Augmentation],
    folds: Sequence[Fold],
    clean: Sequence[Fold] = (),
    tick: Callable[[], None] = lambda: None,
) -> Grouped:
    """Train a member for each fold and candidate, and a plain one for each of `clean`.

    Members come fold by fold, those of `clean` last. Members of a fold see the same examples in
    the same order; each example is given a new view every time it is seen, or a few in turn.
    """
    device = next(net.parameters()).device
    if len(net.shape) == 3:
        net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch types it for tensors alone
    optimizer = AdamW(net.parameters(), schedule.decay)
    steps = schedule.steps(len((*folds, *clean)[0].train))
    net.train()

    def compute(x: Tensor, y: Tensor) -> None:
        with precision(device, net.shape, cache=False):  # a step uses each weight once
            out = net(x).float()
        loss = member_loss(out, y, data.classes is not None).sum() / len(x)
        loss.backward()

    step = Recorded(compute, worth_recording(device, steps))
    batches = make_batches(data, schedule, candidates, folds, clean, device)
    for k, (x, y) in enumerate(batches):
        step(x, y)
        share, momentum = one_cycle(k, steps)
        optimizer.step(share * schedule.rate, momentum)
        if not step.repeats:
            optimizer.forget()
        tick()
    return net.eval()


def worth_recording(device: torch.device, steps: int) -> bool:
    """Return whether so many steps are recorded, and repeated."""
    return device.type == "cuda" and steps >= _LONG


def member_loss(out: Tensor, y: Tensor, classes: bool) -> Tensor:
    """Return the loss of ``(b, members, C)`` against ``(b, members)``, each member's own.

    Multi-label targets are ``(b, members, C)``.
    """
    if y.dim() == 3:
        return F.binary_cross_entropy_with_logits(out, y.to(out), reduction="none").mean(-1)
    if not classes:
        return (out.squeeze(-1) - y).square()
    return F.cross_entropy(out.flatten(0, 1), y.flatten(), reduction="none").view(y.shape)


@torch.no_grad()
def run_members(
    net: Grouped, data: Dataset, rows: Sequence[Tensor], copies: Sequence[int]
) -> list[Tensor]:
    """Run clean examples through all members: ``(examples, copies, C)`` for each of `rows`.

    Parameters
    ----------
    net, data
        The members, and the data that `rows` are of.
    rows
        The examples of each run of members, as many in each.
    copies
        How many members in a row are given the same examples.
    """
    device = next(net.parameters()).device
    repeats = torch.tensor(copies, device=device)
    front = front_end(data).to(device)
    parts = []
    for index in torch.stack(list(rows)).split(max(16, 16384 // net.members), dim=1):
        x = front(data.batch(index.flatten(), device, torch.float32))
        x = x.unflatten(0, index.shape).transpose(0, 1)  # (b, rows, *shape)
        with precision(device, net.shape):
            parts.append(net(x.repeat_interleave(repeats, 1)).float())
    return list(torch.cat(parts).split(list(copies), dim=1))


def precision(
    device: torch.device, shape: tuple[int, ...], cache: bool = True
) -> contextlib.AbstractContextManager:
    """Use bfloat16 where the device multiplies it faster, on a CPU for images alone."""
    short = has_bfloat16(device) and (device.type == "cuda" or len(shape) == 3)
    return torch.autocast(device.type, torch.bfloat16, enabled=short, cache_enabled=cache)


def make_batches(
    data: Dataset,
    schedule: Schedule,
    candidates: Sequence[Augmentation],
    folds: Sequence[Fold],
    clean: Sequence[Fold],
    device: torch.device,
    front: AsItIs | LogMel | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches ``(b, members, *shape)`` with their targets ``(b, members)``."""
    everyone = (*folds, *clean)
    size = len(everyone[0].train)
    batch = min(schedule.batch, size)
    used = size // batch * batch
    different = min(schedule.views or schedule.epochs, schedule.epochs)
    most = _VIEWS if device.type == "cpu" else _VIEWS_GPU
    at_once = max(1, min(different, most // size))
    generators = [torch.Generator().manual_seed(fold.start) for fold in everyone]
    target = torch.stack([data.y[fold.train] for fold in everyone]).to(device)
    target = target.float() if target.is_floating_point() else target
    front = (front or front_end(data)).to(device)
    originals = [front(data.x[fold.train].contiguous().to(device)) for fold in clean]
    each = torch.arange(len(everyone), device=device).unsqueeze(1)
    copies = torch.tensor([len(candidates)] * len(folds) + [1] * len(clean), device=device)
    pool = torch.empty(0)
    for epoch in range(schedule.epochs):
        turn = epoch % different
        if folds and turn % at_once == 0 and (epoch == 0 or at_once < different):
            pool = _views(data, candidates, folds, turn, at_once, device, front)
        order = torch.stack([torch.randperm(size, generator=g) for g in generators]).to(device)
        for part in order[:, :used].split(batch, dim=1):
            members = []
            if folds:
                x = pool[turn % at_once][each[: len(folds)], part[: len(folds)]]
                members.append(
                    _floats(x.transpose(0, 1).flatten(1, 2))
                )  # (b, folds × candidates, …)
            if clean:
                plain = zip(originals, part[len(folds) :], strict=True)
                members.append(_floats(torch.stack([x[rows] for x, rows in plain], 1)))
            x = members[0] if len(members) == 1 else torch.cat(members, 1)
            y = target[each, part].transpose(0, 1).repeat_interleave(copies, 1)
            yield x, y


def _floats(x: Tensor) -> Tensor:
    return x.float() / 255 if x.dtype == torch.uint8 else x.float()


def _views(
    data: Dataset,
    candidates: Sequence[Augmentation],
    folds: Sequence[Fold],
    epoch: int,
    count: int,
    device: torch.device,
    front: AsItIs | LogMel | None = None,
) -> Tensor:
    """Make the views of `count` epochs: ``(count, folds, examples, candidates, *shape)``.

    Pixels are kept as bytes, and sound as the network sees it. A draw depends on the seed, the
    fold, the example and the epoch, and on nothing else.
    """
    pixels = data.kind == "image"
    front = (front or front_end(data)).to(device)
    index = torch.cat([fold.train for fold in folds])
    number = torch.cat([fold.train + fold.number * len(data) for fold in folds])
    pool = torch.empty(
        (count, len(index), len(candidates), *front.shape),
        dtype=torch.uint8 if pixels else front.dtype,
        device=device,
    )
    work = front.work if device.type == "cpu" else min(front.work, 4)  # caches are small
    step = max(1, _VALUES // (count * data.x[0].numel() * work))
    for at in range(0, len(index), step):
        rows = slice(at, at + step)
        x = data.batch(index[rows], device, torch.float32)
        rng = Rng(folds[0].seed, number[rows].to(device)).child(epoch)
        for k, candidate in enumerate(candidates):
            views = front(candidate.views(x, count, rng))
            if pixels:
                views = (views.clamp(0, 1) * 255).round().to(torch.uint8)
            pool[:, rows, k] = views
    return pool.unflatten(1, (len(folds), -1))
