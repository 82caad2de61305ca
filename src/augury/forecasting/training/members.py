"""Training of many small networks at once, each with its own augmentation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.devices import has_bfloat16
from augury._base.errors import AuguryError
from augury._base.pixels import to_bytes
from augury._base.rng import Rng
from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.forecasting.training.grouped import Grouped

_VIEWS = 8000  # versions that a candidate makes in one go: as few and large steps as memory allows
_VALUES = 1 << 26  # numbers in flight while it makes them


@dataclass(frozen=True)
class Protocol:
    """How long and on how much members train: AdamW with a one-cycle rate.

    Pictures larger than `side` pixels are shrunk to that after augmentation.
    """

    steps: int = 600
    batch: int = 64
    examples: int = 1000
    held: int = 2500
    folds: int = 2
    rate: float = 0.01
    decay: float = 0.005
    side: int = 32

    def seen(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Give the shape of an example as the network sees it."""
        if len(shape) != 3 or max(shape[1:]) <= self.side:
            return shape
        scale = self.side / max(shape[1:])
        return (shape[0], *(max(4, round(side * scale)) for side in shape[1:]))


@dataclass(frozen=True)
class Fold:
    """Which examples a trial trains on and which it is judged by."""

    train: Tensor
    held: Tensor
    seed: int
    number: int = 0

    @property
    def start(self) -> int:
        """The seed of the weights it starts from, and of the order of its examples."""
        return self.seed * 1000 + self.number

    @classmethod
    def of(cls, data: Dataset, protocol: Protocol, seed: int, number: int) -> Fold:
        """Take some examples to train on, others in each fold, and keep the rest to judge by."""
        size = min(protocol.examples, len(data) // 2)
        if size < 2:
            raise AuguryError(f"a trial needs at least 4 examples, and there are {len(data)}")
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))
        order = order.roll(-number * size)
        return cls(order[:size], order[size:][: protocol.held], seed, number)


def train_members(
    net: Grouped,
    data: Dataset,
    protocol: Protocol,
    candidates: Sequence[Augmentation],
    folds: Sequence[Fold],
    tick: Callable[[], None] = lambda: None,
) -> Grouped:
    """Train a member for each fold and candidate, all candidates of a fold side by side.

    Members come fold by fold. Those of a fold see the same examples in the same order; each
    example is given a new version every time it is seen.
    """
    device = next(net.parameters()).device
    if data.kind == "image":
        net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch types it for tensors alone
    optimizer = torch.optim.AdamW(
        net.parameters(), protocol.rate, weight_decay=protocol.decay, fused=True
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, protocol.rate, total_steps=protocol.steps
    )
    net.train()
    for x, y in _batches(data, protocol, candidates, folds, device):
        with _precision(device):
            out = net(x).float()
        loss = member_loss(out, y, data.classes is not None).sum() / len(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        tick()
    return net.eval()


def member_loss(out: Tensor, y: Tensor, classes: bool) -> Tensor:
    """Loss of ``(b, members, C)`` against ``(b, members)``, each on its own."""
    if not classes:
        return (out.squeeze(-1) - y).square()
    return F.cross_entropy(out.flatten(0, 1), y.flatten(), reduction="none").view(y.shape)


@torch.no_grad()
def run_members(net: Grouped, data: Dataset, rows: Sequence[Tensor]) -> Tensor:
    """Run clean examples through all members: ``(folds, examples, candidates, C)``.

    `rows` are each fold's own examples, as many in each.
    """
    device = next(net.parameters()).device
    copies = net.members // len(rows)
    parts = []
    for index in torch.stack(list(rows)).split(max(16, 16384 // net.members), dim=1):
        x = _shrink(data.batch(index.flatten(), device, torch.float32), net.shape)
        x = x.unflatten(0, index.shape).transpose(0, 1)  # (b, folds, *shape)
        with _precision(device):
            parts.append(net(x.repeat_interleave(copies, 1)).float())
    return torch.cat(parts).unflatten(1, (len(rows), copies)).transpose(0, 1)


def _precision(device: torch.device) -> contextlib.AbstractContextManager:
    """Use bfloat16 on a GPU that has it; a CPU's float32, so that all of them say the same."""
    short = device.type == "cuda" and has_bfloat16(device)
    return torch.autocast(device.type, torch.bfloat16, enabled=short)


def _batches(
    data: Dataset,
    protocol: Protocol,
    candidates: Sequence[Augmentation],
    folds: Sequence[Fold],
    device: torch.device,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Give batches ``(b, members, *shape)`` with their targets ``(b, members)``."""
    size = len(folds[0].train)
    batch = min(protocol.batch, size)
    per_epoch = size // batch
    epochs = -(-protocol.steps // per_epoch)
    at_once = max(1, min(epochs, _VIEWS // size))
    generators = [torch.Generator().manual_seed(fold.start) for fold in folds]
    target = torch.stack([data.y[fold.train] for fold in folds]).to(device)
    each = torch.arange(len(folds), device=device).unsqueeze(1)
    left, pool = protocol.steps, torch.empty(0)
    for epoch in range(epochs):
        if epoch % at_once == 0:
            pool = _versions(data, protocol, candidates, folds, epoch, at_once, device)
        order = torch.stack([torch.randperm(size, generator=g) for g in generators]).to(device)
        for part in order[:, : per_epoch * batch].split(batch, dim=1)[:left]:
            x = pool[epoch % at_once][each, part].transpose(0, 1)  # (b, folds, candidates, …)
            x = x.flatten(1, 2)
            y = target[each, part].T.repeat_interleave(len(candidates), 1)
            yield (x.float() / 255 if x.dtype == torch.uint8 else x), y
        left -= per_epoch


def _versions(
    data: Dataset,
    protocol: Protocol,
    candidates: Sequence[Augmentation],
    folds: Sequence[Fold],
    epoch: int,
    count: int,
    device: torch.device,
) -> Tensor:
    """Make versions as small as they are seen: ``(count, folds, examples, candidates, *shape)``.

    They are kept as bytes where pixels are. A draw depends on the seed, the fold, the example and
    the epoch, and on nothing else.
    """
    pixels, shape = data.kind == "image", protocol.seen(data.shape)
    index = torch.cat([fold.train for fold in folds])
    number = torch.cat([fold.train + fold.number * len(data) for fold in folds])
    pool = torch.empty(
        (count, len(index), len(candidates), *shape),
        dtype=torch.uint8 if pixels else torch.float32,
        device=device,
    )
    step = max(1, _VALUES // (count * data.x[0].numel()))
    for at in range(0, len(index), step):
        rows = slice(at, at + step)
        x = data.batch(index[rows], device, torch.float32)
        rng = Rng(folds[0].seed, number[rows].to(device)).child(epoch)
        for k, candidate in enumerate(candidates):
            views = _shrink(candidate.views(x, count, rng).flatten(0, 1), shape)
            if pixels:
                views = to_bytes(views)
            pool[:, rows, k] = views.unflatten(0, (count, -1))
    return pool.unflatten(1, (len(folds), -1))


def _shrink(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    if tuple(x.shape[1:]) == shape:
        return x
    return F.interpolate(x, shape[1:], mode="bilinear", antialias=True)
