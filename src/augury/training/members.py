"""Brief training of small networks, each with its own augmentation, from the same start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.errors import AuguryError
from augury.rng import Rng
from augury.training.grouped import Grouped

_SIDE = 32  # pixels a side that the network sees: larger pictures are shrunk after augmentation


@dataclass(frozen=True)
class Protocol:
    """How long and on how much a trial trains."""

    steps: int = 600
    batch: int = 64
    examples: int = 1000
    held: int = 2500
    folds: int = 2
    rate: float = 0.01
    decay: float = 0.005


@dataclass(frozen=True)
class Fold:
    """Which examples a trial trains on and which it is judged by."""

    train: Tensor
    held: Tensor
    seed: int

    @classmethod
    def of(cls, data: Dataset, protocol: Protocol, seed: int, number: int) -> Fold:
        """Take some examples to train on, others in each fold, and keep the rest to judge by."""
        size = min(protocol.examples, len(data) // 2)
        if size < 2:
            raise AuguryError(f"a trial needs at least 4 examples, and there are {len(data)}")
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))
        order = order.roll(-number * size)
        return cls(order[:size], order[size:][: protocol.held], seed * 1000 + number)


def train_members(
    net: Grouped,
    data: Dataset,
    protocol: Protocol,
    candidates: Sequence[Augmentation],
    fold: Fold,
    tick: Callable[[], None],
) -> Tensor:
    """Train each member of a grouped network with its own candidate.

    Returns
    -------
    outputs
        ``(held, candidates, C)``, on the clean examples that the fold held out.
    """
    device = next(net.parameters()).device
    fast = device.type == "cuda"
    if data.kind == "image":
        net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.AdamW(
        net.parameters(), protocol.rate, weight_decay=protocol.decay, fused=fast
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, protocol.rate, total_steps=protocol.steps
    )
    net.train()
    target = data.y.to(device)
    for x, rows in _batches(data, protocol, candidates, fold, device):
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            out = net(x).float()
        y = target[rows].unsqueeze(1).expand(-1, len(candidates))
        loss = member_loss(out, y, data.classes is not None).sum() / len(rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        tick()
    return _run(net.eval(), data, fold.held, len(candidates))


def member_loss(out: Tensor, y: Tensor, classes: bool) -> Tensor:
    """Loss of ``(b, members, C)`` against ``(b, members)``, each on its own."""
    if not classes:
        return (out.squeeze(-1) - y).square()
    return F.cross_entropy(out.flatten(0, 1), y.flatten(), reduction="none").view(y.shape)


def seen(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Give the shape of an example as the network sees it."""
    if len(shape) != 3 or max(shape[1:]) <= _SIDE:
        return shape
    scale = _SIDE / max(shape[1:])
    return (shape[0], *(max(4, round(side * scale)) for side in shape[1:]))


def _batches(
    data: Dataset,
    protocol: Protocol,
    candidates: Sequence[Augmentation],
    fold: Fold,
    device: torch.device,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Give batches ``(b, candidates, *shape)`` with the examples' indices ``(b,)``.

    Versions are made for all examples of an epoch at once (several epochs if they are short) and
    kept as bytes where pixels are; every version is used once.
    """
    size = len(fold.train)
    batch = min(protocol.batch, size)
    per_epoch = size // batch
    epochs = -(-16 // per_epoch)
    generator = torch.Generator().manual_seed(fold.seed)
    rows = fold.train.to(device)
    done = 0
    while done < protocol.steps:
        pool = _versions(data, candidates, fold, done, epochs, device)
        for epoch in range(epochs):
            order = torch.randperm(size, generator=generator).to(device)
            for part in order[: per_epoch * batch].split(batch):
                if done == protocol.steps:
                    return
                x = pool[:, epoch, part].transpose(0, 1)
                yield (x.float() / 255 if x.dtype == torch.uint8 else x), rows[part]
                done += 1


def _versions(
    data: Dataset,
    candidates: Sequence[Augmentation],
    fold: Fold,
    step: int,
    count: int,
    device: torch.device,
) -> Tensor:
    """Make versions as small as they are seen: ``(candidates, count, examples, *shape)``."""
    pixels = data.kind == "image"
    shape = (len(candidates), count, len(fold.train), *seen(data.shape))
    pool = torch.empty(shape, dtype=torch.uint8 if pixels else torch.float32, device=device)
    for at, part in zip(range(0, len(fold.train), 500), fold.train.split(500), strict=True):
        x = data.batch(part, device, torch.float32)
        rng = Rng(fold.seed, part.to(device)).child(step)
        for k, candidate in enumerate(candidates):
            views = _shrink(candidate.views(x, count, rng))
            if pixels:
                views = (views.clamp(0, 1) * 255).round().to(torch.uint8)
            pool[k, :, at : at + len(part)] = views
    return pool


@torch.no_grad()
def _run(net: nn.Module, data: Dataset, index: Tensor, members: int) -> Tensor:
    """Run clean examples through all members: ``(examples, members, C)``."""
    device = next(net.parameters()).device
    parts = []
    for part in index.split(256):
        x = _shrink(data.batch(part, device, torch.float32).unsqueeze(0))[0]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            parts.append(net(x.unsqueeze(1).expand(-1, members, *x.shape[1:])).float())
    return torch.cat(parts)


def _shrink(views: Tensor) -> Tensor:
    shape = tuple(views.shape[2:])
    if seen(shape) == shape:
        return views
    small = F.interpolate(views.flatten(0, 1), seen(shape)[1:], mode="bilinear", antialias=True)
    return small.unflatten(0, views.shape[:2])
