"""Train LeNet by every method, all trials at once, and measure accuracy and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations import parse
from augury.data.dataset import Dataset
from augury_paper.averaging.methods import AUGMENTATION, Method, methods
from augury_paper.cells import Bench, Cell
from augury_paper.networks import LeNets, lenet, seeded
from augury_paper.settings import Settings
from augury_paper.sgd import batch_order, learning_rates
from augury_paper.sgd import train as descend
from augury_paper.views import FreshViews, Pool, n_views_made

DATASETS = ("mnist", "cifar10")


def cells(settings: Settings) -> list[Cell]:
    """List the cells: of each data set the first order, the second, and fewer views."""
    unused = ("datasets", "n_components", "together")  # the methods are named below
    shared = {k: v for k, v in asdict(settings).items() if k not in unused}
    shared |= {"augmentation": AUGMENTATION}
    parts = methods(n_views_made(settings), few=settings.small, together=settings.together)
    return [
        Cell(
            "averaging",
            f"{dataset}-{part}",
            dataset,
            shared | {"methods": [asdict(method) for method in chosen]},
            partial(compute, dataset, chosen, settings),
        )
        for dataset in DATASETS
        if dataset in settings.datasets
        for part, chosen in parts.items()
    ]


def compute(dataset: str, chosen: Sequence[Method], settings: Settings, bench: Bench) -> dict:
    """Train by each method, the first of which, full augmentation, is compared with the others.

    All methods have the same starting weights and the same batches. The time is that of training,
    from gathering the views to the optimiser's step; views that are drawn in each epoch count,
    those that are made once do not.

    Returns
    -------
    found
        For each method, under ``"methods"`` and its name: layer, order and groups; test accuracy
        and KL(full ‖ method) of test predictions, by trial; the seconds of all trials together, on
        a CPU by the time of all threads too, in which other work on the machine counts for less.
    """
    images, device = bench.images(dataset), bench.device
    total, done = sum(method.cost for method in chosen), 0.0
    full: Tensor | None = None
    pools: dict[int, Pool] = {}
    found = {}
    for method in chosen:

        def part(share: float, method: Method = method, done: float = done) -> None:
            bench.tick((done + share * method.cost) / total, method.name)

        n = method.n_views if method.n_views > 1 else chosen[0].n_views
        if n not in pools:
            pools[n] = Pool.of(images.train, parse(AUGMENTATION), n, device)
        begun = time.process_time()
        model, seconds = train(method, pools[n], images.train, settings, part)
        processor = time.process_time() - begun
        logs = predictions(model, images.test)
        full = logs if full is None else full
        kl = (full.exp() * (full - logs)).sum(-1).mean(0)
        right = logs.argmax(-1) == images.test.y.to(device).unsqueeze(1)
        found[method.name] = {
            "layer": method.layer,
            "order": method.order,
            "groups": method.groups,
            "accuracy": right.double().mean(0).tolist(),
            "kl": kl.tolist(),
            "training_seconds": seconds,
        }
        if device.type == "cpu":
            found[method.name]["processor_seconds"] = processor
        done += method.cost
    return {"methods": found}


def train(
    method: Method,
    pool: Pool,
    data: Dataset,
    settings: Settings,
    tick: Callable[[float], None],
    dtype: torch.dtype = torch.float32,
) -> tuple[LeNets, float]:
    """Train `settings.trials` LeNets together; return them and the seconds it took.

    The pool holds the views of the data that are made once.
    """
    device, fast = pool.x.device, pool.x.is_cuda
    build = partial(lenet, *pool.x.shape[1:3], pool.classes)
    members = [seeded(build, k) for k in range(settings.trials)]
    model = LeNets.of(members, dense=fast).to(device, dtype)
    order = batch_order(len(pool.x), settings.batch_size, settings.epochs, 0, device)
    keys = Rng(0, torch.arange(order.numel(), device=device)).keys.view_as(order)
    fresh = FreshViews(data, parse(AUGMENTATION), device) if method.n_views == 1 else None

    def loss(rows: Tensor, step: Tensor) -> Tensor:
        if method.n_views > 1:
            views = pool.views[:, rows]
        else:
            views = (pool.x if fresh is None else fresh.x)[rows].unsqueeze(0)
        draws = keys.index_select(0, step).squeeze(0)
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            views = views.to(dtype) / 255
            return method.losses(model, views, pool.weights, pool.y[rows], draws).mean()

    seconds = descend(
        model,
        loss,
        order,
        learning_rates(order, settings.learning_rate, falling=settings.falling),
        epochs=settings.epochs,
        momentum=settings.momentum,
        begin=lambda epoch: None if fresh is None else fresh.renew(epoch),
        tick=tick,
    )
    return model, seconds


@torch.no_grad()
def predictions(model: LeNets, test: Dataset) -> Tensor:
    """Return log-probabilities ``(examples, members, C)`` of test images, in double precision."""
    device = next(model.parameters()).device
    parts = []
    for index in torch.arange(len(test)).split(2000):
        x = test.batch(index, device, torch.float32)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            parts.append(model(x).double().log_softmax(-1))
    return torch.cat(parts)
