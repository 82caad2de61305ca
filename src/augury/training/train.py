"""Train all candidates at once: what augmentation really gains, for the price of a few runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.rng import Rng
from augury.training.grouped import Grouped


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

    AdamW with a one-cycle schedule; every example of every epoch gets a draw of its own. All
    candidates and seeds are members of one grouped network, so the cost is about that of one
    network of their joint size.
    """
    members = len(candidates) * seeds
    classes = len(train.classes or ())
    model = Grouped(architecture, members, train.shape, classes, seed).to(device)
    fast = device.type == "cuda"
    if fast:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=decay, fused=fast)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    y = train.y.to(device)
    per_epoch = max(1, len(train) // batch)
    generator = torch.Generator().manual_seed(seed)
    pool, order = torch.empty(0), torch.empty(0)
    for step in range(steps):
        at = step % per_epoch
        if at == 0:
            pool = _versions(train, candidates, seed, step // per_epoch, device)
            order = torch.stack(
                [torch.randperm(len(train), generator=generator) for _ in range(seeds)]
            ).to(device)
        rows = order[:, at * batch : (at + 1) * batch]  # (seeds, b)
        x = pool[:, rows].flatten(0, 1).transpose(0, 1)  # (b, candidates · seeds, *shape)
        target = y[rows].repeat(len(candidates), 1).T
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            logits = model(x.to(torch.float32) / 255)
        loss = F.cross_entropy(logits.float().flatten(0, 1), target.flatten(), reduction="sum")
        optimizer.zero_grad()
        (loss / len(x)).backward()
        optimizer.step()
        schedule.step()
        progress(step + 1, steps)
    accuracy, entropy = _test(model, test, members, device)
    return Curve(accuracy.view(-1, seeds), entropy.view(-1, seeds))


def _versions(
    data: Dataset, candidates: Sequence[Augmentation], seed: int, epoch: int, device: torch.device
) -> Tensor:
    """Give one version of every example by every candidate, as bytes."""
    index = torch.arange(len(data))
    out = torch.empty(len(candidates), *data.x.shape, dtype=torch.uint8, device=device)
    for part in index.split(4096):
        x = data.batch(part, device, torch.float32)
        rng = Rng(seed, part.to(device) + epoch * len(data))
        for k, candidate in enumerate(candidates):
            version = candidate.views(x, 1, rng)[0]
            out[k, part[0] : part[-1] + 1] = (version.clamp(0, 1) * 255).round().to(torch.uint8)
    return out


@torch.no_grad()
def _test(
    model: Grouped, data: Dataset, members: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    model.eval()
    right = torch.zeros(members, device=device)
    entropy = torch.zeros(members, device=device)
    for part in torch.arange(len(data)).split(500):
        x = data.batch(part, device, torch.float32)
        y = data.y[part].to(device)
        logits = model(x.unsqueeze(1).expand(-1, members, *x.shape[1:]))
        right += (logits.argmax(-1) == y.unsqueeze(1)).sum(0)
        target = y.unsqueeze(1).expand(-1, members)
        entropy += F.cross_entropy(logits.transpose(1, 2), target, reduction="none").sum(0)
    return (right / len(data)).cpu(), (entropy / len(data)).cpu()
