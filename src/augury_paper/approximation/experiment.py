"""The cells: each data set, augmentation and base model, and the authors' own settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import torch

from augury.augmentations import parse
from augury_paper.approximation.bases import FourierBase, LeNetBase
from augury_paper.approximation.train import train
from augury_paper.cells import Bench, Cell
from augury_paper.settings import AUGMENTATIONS, Settings
from augury_paper.views import Pool

DATASETS = ("mnist", "cifar10")
BASES = {"rbf": "RBF", "lenet": "LeNet"}
AUTHORS = {
    "rotation": ("rotation(15)", 16),
    "crop": ("resized_crop(0.64)", 31),
    "blur": ("blur(0.05,1.0)", 20),
}
"""The views beside the image itself in the authors' code."""
_DECAY = 0.001  # the authors' weight decay


def cells(settings: Settings) -> list[Cell]:
    """List the cells; all objectives and trials of one train together.

    For Fourier features there is a second cell that takes what the paper leaves open from its
    authors' code; a quick look leaves it out.
    """
    found = []
    for dataset in DATASETS:
        if dataset not in settings.datasets:
            continue
        for name, spec in AUGMENTATIONS.items():
            for base in BASES:
                run: Callable[[Bench], dict[str, Any]] = partial(
                    compute, dataset, base, spec, settings
                )
                setting = _setting(base, settings)
                setting |= {"augmentation": spec, "n_views": n_views(base, settings)}
                found.append(
                    Cell("approximation", f"{dataset}-{base}-{name}", dataset, setting, run)
                )
            if not settings.small:
                own, n = AUTHORS[name]
                setting = _setting("rbf", settings)
                setting |= {"augmentation": own, "n_views": n + 1, "weight_decay": _DECAY}
                setting["size"] = _authors_size(settings)
                run = partial(compute_as_authors, dataset, name, settings)
                found.append(
                    Cell("approximation", f"{dataset}-authors-{name}", dataset, setting, run)
                )
    return found


def n_views(base: str, settings: Settings) -> int:
    """Return the number of views that are T: a quarter of the settings' for LeNet.

    LeNet trains on every view of every image in every model, in time proportional to them.
    """
    return max(4, settings.n_views // 4) if base == "lenet" else settings.n_views


def _setting(base: str, settings: Settings) -> dict[str, Any]:
    unused = ("datasets", "n_components", "falling", "together")
    shared = {k: v for k, v in asdict(settings).items() if k not in unused}
    shared |= {"base": base, "distances": "of examples"}
    of_features = {"n_components": settings.n_components, "size": settings.size}
    return shared | (of_features if base == "rbf" else {})


def compute(dataset: str, base: str, spec: str, settings: Settings, bench: Bench) -> dict[str, Any]:
    """Train one cell's models."""
    images = bench.images(dataset)
    pool = Pool.of(images.train, parse(spec), n_views(base, settings), bench.device)
    if base == "rbf":
        models = FourierBase(images.train, settings, bench.device)
        about = {"gamma": models.gamma}
    else:
        models = LeNetBase(images.train, settings.trials, bench.device)
        about = {}
    return about | train(models, pool, images.test, settings, bench.tick)


def compute_as_authors(dataset: str, name: str, settings: Settings, bench: Bench) -> dict[str, Any]:
    """Train one cell's models on Fourier features as the authors' code does.

    The image itself is among its views, features have amplitude 1, and weights a decay.
    """
    spec, n = AUTHORS[name]
    images = bench.images(dataset)
    pool = Pool.of(images.train, parse(spec), n, bench.device)
    weights = torch.cat([pool.weights.new_ones(1) / n, pool.weights]) * (n / (n + 1))
    pool = replace(pool, views=torch.cat([pool.x.unsqueeze(0), pool.views]), weights=weights)
    models = FourierBase(images.train, settings, bench.device)
    models.size = _authors_size(settings)
    found = train(models, pool, images.test, settings, bench.tick, weight_decay=_DECAY)
    return {"gamma": models.gamma, **found}


def _authors_size(settings: Settings) -> float:
    return math.sqrt(settings.n_components / 2)
