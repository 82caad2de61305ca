"""Train LeNet in every way, all trials at once, and take the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations import parse
from augury.data.dataset import Dataset
from augury_paper.cells import Bench, Cell, Images
from augury_paper.layers.ways import AUGMENTATION, Way, ways
from augury_paper.networks import LeNets, lenet, seeded
from augury_paper.pool import Pool, versions_made
from augury_paper.recorded import orders, recorded
from augury_paper.settings import Settings

DATASETS = ("mnist", "cifar10")


def cells(settings: Settings) -> list[Cell]:
    """List the cells: of each data set the first order, the second, and fewer versions."""
    shared = {k: v for k, v in asdict(settings).items() if k not in ("datasets", "features")}
    shared |= {"augmentation": AUGMENTATION}
    few = settings.examples > 0  # a look at a part of the data takes fewer ways
    return [
        Cell(
            "layers",
            f"{dataset}-{part}",
            dataset,
            shared | {"ways": [asdict(way) for way in chosen]},
            partial(compute, dataset, chosen, settings),
        )
        for dataset in DATASETS
        if dataset in settings.datasets
        for part, chosen in ways(versions_made(settings), few=few).items()
    ]


def compute(dataset: str, chosen: Sequence[Way], settings: Settings, bench: Bench) -> dict:
    """Compute one cell."""
    return curve(bench.images(dataset), chosen, settings, bench.device, bench.tick)


def curve(
    images: Images,
    chosen: Sequence[Way],
    settings: Settings,
    device: torch.device,
    tick: Callable[[float, str], None],
    *,
    falling: bool = False,
) -> dict[str, Any]:
    """Train in each way, the first of which is full augmentation, that others are compared with.

    Every way has the same starts and the same batches. The time is that of the training steps,
    from the gathering of versions, which are made once, to the optimiser's step. With `falling`
    the rate goes down to 0 along a line; the paper's stays, and the last steps' noise with it.

    Returns
    -------
    found
        Of each way by name: its layer, order and groups; test accuracy and KL(full ‖ way) of test
        predictions, by trial; the seconds that all trials took together.
    """
    total, done = sum(way.cost for way in chosen), 0.0
    full: Tensor | None = None
    pools: dict[int, Pool] = {}
    found = {}
    for way in chosen:

        def part(share: float, way: Way = way, done: float = done) -> None:
            tick((done + share * way.cost) / total, way.name)

        n = way.n or chosen[0].n
        if n not in pools:
            pools[n] = Pool.of(images.train, parse(AUGMENTATION), n, device)
        model, seconds = train(way, pools[n], settings, part, falling=falling)
        logs = predictions(model, images.test)
        full = logs if full is None else full
        kl = (full.exp() * (full - logs)).sum(-1).mean(0)
        right = logs.argmax(-1) == images.test.y.to(device).unsqueeze(1)
        found[way.name] = {
            "layer": way.layer,
            "order": way.order,
            "groups": way.groups,
            "accuracy": right.double().mean(0).tolist(),
            "kl": kl.tolist(),
            "training_seconds": seconds,
        }
        done += way.cost
    return {"ways": found}


def train(
    way: Way,
    pool: Pool,
    settings: Settings,
    tick: Callable[[float], None],
    dtype: torch.dtype = torch.float32,
    *,
    falling: bool = False,
) -> tuple[LeNets, float]:
    """Train `settings.trials` LeNets together by SGD; give them, and the seconds it took."""
    device, fast = pool.x.device, pool.x.is_cuda
    channels, side = pool.x.shape[1:3]
    build = partial(lenet, channels, side, pool.classes)
    members = [seeded(build, k) for k in range(settings.trials)]
    model = LeNets.of(members, dense=fast).to(device, dtype)
    order = orders(len(pool.x), settings.batch, settings.epochs, 0, device)
    keys = Rng(0, torch.arange(order.numel(), device=device)).keys.view_as(order)
    counter = torch.zeros(1, dtype=torch.int64, device=device)
    rates = torch.full((len(order),), settings.rate, dtype=dtype, device=device)
    if falling:
        rates *= torch.arange(len(order), 0, -1, device=device) / len(order)
    # a tensor, so that a recorded step can change it
    rate = torch.tensor(settings.rate, dtype=dtype, device=device)
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=settings.momentum, fused=fast)

    def step() -> None:
        rows, draws = (t.index_select(0, counter).squeeze(0) for t in (order, keys))
        rate.copy_(rates.index_select(0, counter).squeeze(0))
        counter.add_(1)
        x = pool.x[rows].to(dtype) / 255 if way.n == 0 else torch.empty(0)
        versions = pool.versions[:, rows].to(dtype) / 255 if way.n else x
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            losses = way.losses(model, x, versions, pool.weights, pool.y[rows], draws)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()

    run = recorded(step, optimizer, [*model.parameters(), counter], device)
    _wait(device)
    started = time.perf_counter()
    for done in range(1, len(order) + 1):
        run()
        if done % 20 == 0:
            tick(done / len(order))
    _wait(device)
    return model, time.perf_counter() - started


@torch.no_grad()
def predictions(model: LeNets, test: Dataset) -> Tensor:
    """Give log-probabilities ``(examples, members, C)`` of test images, in double precision."""
    device = next(model.parameters()).device
    parts = []
    for index in torch.arange(len(test)).split(2000):
        x = test.batch(index, device, torch.float32)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            parts.append(model(x).double().log_softmax(-1))
    return torch.cat(parts)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
