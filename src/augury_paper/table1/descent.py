"""The paper's own training: stochastic gradients on Fourier features, all trials side by side.

It does not use `augury_paper.sgd`: a linear head's gradient is known, Φᵀ(p − y), so that a step is
two batched products, and each trial has an order of examples of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.devices import tensor_cores
from augury._base.rng import Rng
from augury.augmentations import parse
from augury.data.dataset import Dataset
from augury.features import AugmentedFourier, FourierFeatures
from augury.kernel.solvers import available_bytes
from augury_paper.cells import Bench
from augury_paper.claims import packed
from augury_paper.settings import Settings
from augury_paper.sgd import now
from augury_paper.table1.tasks import TASKS, turned

Tick = Callable[[float], None]
_BLOCK = 2048
_FREQUENCIES = 16.0  # GiB of transformed frequencies, of one trial at a time


def by_descent(bench: Bench, dataset: str, method: str, settings: Settings) -> dict[str, Any]:
    """Train one method on one data set; accuracy of each trial, and seconds per trial."""
    images, task, device = bench.images(dataset), TASKS[dataset], bench.device
    test = turned(images.test, task.turn)
    n = task.n_views(settings)
    held = n if method == "traditional" else 1
    gamma = choose_gamma(images.train)
    right: list[Tensor] = []
    with torch.no_grad(), tensor_cores(device.type == "cuda"):
        _maps(method, task.augmentation, 2, 0, settings, gamma, images.train, device)  # to warm up
        started = now(device)
        for group in _groups(len(images.train), len(test), held, settings, device):

            def tick(share: float, group: Sequence[int] = group) -> None:
                bench.tick((group[0] + share * len(group)) / settings.trials, method)

            maps = [
                _maps(method, task.augmentation, n, seed, settings, gamma, images.train, device)
                for seed in group
            ]
            if method == "traditional":
                make = _transformed(images.train, task.augmentation, n, maps, settings, device)
            else:
                make = _kept(images.train, maps, settings, device)
            weight, bias = descend_together(make, images.train, group, held, settings, device, tick)
            right += [
                _right(psi, test, settings.size * weight[k], bias[k], device)
                for k, psi in enumerate(maps)
            ]
            del make, maps  # before the next group's are made
        seconds = now(device) - started
    all_right = torch.stack(right).cpu()
    accuracy = all_right.double().mean(1).tolist()
    each = [seconds / len(accuracy)] * len(accuracy)
    counts = packed(all_right.sum(0, dtype=torch.uint8).numpy())
    return {"accuracy": accuracy, "seconds": each, "gamma": gamma, "right": counts}


def descend_together(
    make: Callable[[Tensor], Tensor],
    train: Dataset,
    seeds: Sequence[int],
    n: int,
    settings: Settings,
    device: torch.device,
    tick: Tick = lambda share: None,
) -> tuple[Tensor, Tensor]:
    """Minimise the multinomial loss over n views of all examples, a head for each seed.

    Parameters
    ----------
    make
        From the numbers of examples, ``(trials, b)``, to the features of their views,
        ``(trials, b · n, d)``.
    train, seeds, n
        Labels, and for each trial the seed of its order of examples; views of an example.
    settings
        The paper's: rate, momentum, batch and epochs.
    device, tick
        Where, and what to call with the share that is done.

    Returns
    -------
    weight, bias
        ``(trials, d, C)`` and ``(trials, 1, C)``.

    Notes
    -----
    The gradient of the mean loss is Φᵀ(p − y) / (b · n): two batched products per step.
    """
    classes, count, trials = len(train.classes or ()), len(train), len(seeds)
    target = F.one_hot(train.y, classes).to(device, torch.float32)
    weight = torch.zeros(trials, settings.n_components, classes, device=device)
    bias = torch.zeros(trials, 1, classes, device=device)
    speeds = torch.zeros_like(weight), torch.zeros_like(bias)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    for epoch in range(settings.epochs):
        order = torch.stack([torch.randperm(count, generator=g) for g in generators]).to(device)
        for start, index in zip(
            range(0, count, settings.batch_size), order.split(settings.batch_size, 1), strict=True
        ):
            phi = make(index)
            error = torch.baddbmm(bias, phi, weight).softmax(-1)
            error -= target[index].repeat_interleave(n, 1)
            share = 1 / error.shape[1]
            slopes = (phi.mT @ error, error.sum(1, keepdim=True))
            for value, speed, slope in zip((weight, bias), speeds, slopes, strict=True):
                speed.mul_(settings.momentum).add_(slope, alpha=share)
                value.sub_(speed, alpha=settings.learning_rate)
            tick((epoch + start / count) / settings.epochs)
    return weight, bias


def choose_gamma(train: Dataset, sample: int = 1000) -> float:
    """Choose γ by alignment on a sample of the images as they are, the same for every method."""
    index = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))[:sample]
    x = train.batch(index, torch.device("cpu"), torch.float32)
    gamma = FourierFeatures(2, gamma="alignment").fit(x, train.targets()[index].float()).gamma_
    assert gamma is not None
    return gamma


def _maps(
    method: str,
    augmentation: str,
    n: int,
    seed: int,
    settings: Settings,
    gamma: float,
    train: Dataset,
    device: torch.device,
) -> AugmentedFourier:
    """Return the features of one trial; only augmented ones know of the augmentation."""
    averaged = parse(augmentation if method == "augmented" else "identity")
    phi = FourierFeatures(settings.n_components, gamma=gamma, seed=seed)
    psi = AugmentedFourier(averaged, phi, n_views=n, memory=_FREQUENCIES, seed=seed)
    return psi.fit(train.batch(torch.arange(2), device, torch.float32))


def _kept(
    train: Dataset, maps: Sequence[AugmentedFourier], settings: Settings, device: torch.device
) -> Callable[[Tensor], Tensor]:
    """Compute all features of all trials once: ``(trials, N, d)``."""
    held = torch.empty(len(maps), len(train), maps[0].d, device=device)
    for part in torch.arange(len(train)).split(_BLOCK):
        x = train.batch(part, device, torch.float32)
        for k, psi in enumerate(maps):
            held[k, part[0] : part[-1] + 1] = psi(x).mul_(settings.size)
    trial = torch.arange(len(maps), device=device).unsqueeze(1)
    return lambda index: held[trial, index]


def _transformed(
    train: Dataset,
    augmentation: str,
    n: int,
    maps: Sequence[AugmentedFourier],
    settings: Settings,
    device: torch.device,
) -> Callable[[Tensor], Tensor]:
    """Transform every image n times and keep them all, as the paper does; features as needed."""
    drawn, pixels = parse(augmentation), math.prod(train.shape)
    views = torch.empty(len(train), n, pixels, device=device)
    for part in torch.arange(len(train)).split(_BLOCK):
        x = train.batch(part, device, torch.float32)
        made = drawn.views(x, n, Rng(0, part.to(device)))
        views[part[0] : part[-1] + 1] = made.flatten(2).transpose(0, 1)
    omega = torch.stack([psi.phi.frequencies.mT for psi in maps])  # type: ignore[union-attr]  # fitted, so they have some

    def make(index: Tensor) -> Tensor:
        return waves(views[index].flatten(1, 2), omega, settings)

    return make


def waves(x: Tensor, omega: Tensor, settings: Settings) -> Tensor:
    """Return features ``(…, b, d)`` of images ``(…, b, pixels)``, of the settings' size."""
    phase = x @ omega
    return torch.cat([phase.cos(), phase.sin_()], -1).mul_(settings.size / phase.shape[-1] ** 0.5)


def _right(
    psi: AugmentedFourier, test: Dataset, weight: Tensor, bias: Tensor, device: torch.device
) -> Tensor:
    """Return which test images are classified right, ``(N,)``."""
    parts = []
    for part in torch.arange(len(test)).split(_BLOCK):
        out = psi(test.batch(part, device, torch.float32)) @ weight + bias
        parts.append(out.argmax(1) == test.y[part].to(device))
    return torch.cat(parts)


def _groups(
    count: int, tests: int, held: int, settings: Settings, device: torch.device
) -> list[range]:
    """Split the trials into those whose features fit in memory together."""
    kept = settings.batch_size * held if held > 1 else count
    need = 4 * settings.n_components * (kept + tests)
    most = max(1, int(available_bytes(device) / 2 // need))
    return [
        range(start, min(start + most, settings.trials))
        for start in range(0, settings.trials, most)
    ]
