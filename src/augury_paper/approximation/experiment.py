"""The cells: each data set, augmentation and base model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from augury.augmentations import parse
from augury_paper.approximation.bases import FourierBase, LeNetBase
from augury_paper.approximation.train import train
from augury_paper.cells import Bench, Cell
from augury_paper.pool import Pool
from augury_paper.settings import AUGMENTATIONS, Settings

DATASETS = ("mnist", "cifar10")
BASES = {"rbf": "RBF", "lenet": "LeNet"}
PER_VERSION = 4
"""How many of a setting's versions there are for one of T."""


def cells(settings: Settings) -> list[Cell]:
    """List the cells; all objectives and trials of one train together."""
    found = []
    for dataset in DATASETS:
        if dataset not in settings.datasets:
            continue
        for base in BASES:
            for name, spec in AUGMENTATIONS.items():
                setting = _setting(base, spec, settings)
                run: Callable[[Bench], dict[str, Any]] = partial(
                    compute, dataset, base, spec, settings
                )
                cell = Cell("approximation", f"{dataset}-{base}-{name}", dataset, setting, run)
                found.append(cell)
    return found


def versions(settings: Settings) -> int:
    """Give the number of versions that are T here: four, of the usual sixteen.

    The claims are of any T, and training takes time in proportion to its size.
    """
    return max(4, settings.versions // PER_VERSION)


def _setting(base: str, spec: str, settings: Settings) -> dict[str, Any]:
    shared = {k: v for k, v in asdict(settings).items() if k not in ("datasets", "features")}
    shared |= {"base": base, "augmentation": spec, "versions": versions(settings)}
    shared |= {"distances": "of examples"}
    of_features = {"features": settings.features, "size": settings.size}
    return shared | (of_features if base == "rbf" else {})


def compute(dataset: str, base: str, spec: str, settings: Settings, bench: Bench) -> dict[str, Any]:
    """Train one cell's models."""
    images = bench.images(dataset)
    pool = Pool.of(images.train, parse(spec), versions(settings), bench.device)
    if base == "rbf":
        models = FourierBase(images.train, settings, bench.device)
        about = {"gamma": models.gamma}
    else:
        models = LeNetBase(images.train, settings.trials, bench.device)
        about = {}
    return about | train(models, pool, images.test, settings, bench.tick)
