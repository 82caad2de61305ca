"""Train a ResNet with and without each augmentation, and compare how far layers' features move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from augury.augmentations import Augmentation, identity, parse
from augury.data.dataset import Dataset
from augury.networks.invariance import measure_invariance
from augury_paper.cells import Bench, Cell, Images
from augury_paper.networks import BlocksOfUnits, seeded
from augury_paper.settings import AUGMENTATIONS, Settings
from augury_paper.sgd import batch_order
from augury_paper.sgd import train as descend
from augury_paper.views import FreshViews


@dataclass(frozen=True)
class ResNetTraining:
    """How the residual networks are trained, and how invariance is measured.

    The paper names the network and not its training. This is short: SGD with Nesterov's momentum
    0.9 and weight decay 0.0005, a rate that climbs for a quarter of the steps and falls to 0.
    """

    units: int = 9
    epochs: int = 10
    batch_size: int = 512
    learning_rate: float = 0.4
    images: int = 1000
    n_views: int = 16

    @classmethod
    def of(cls, settings: Settings) -> ResNetTraining:
        """Take the network and its training whole, or a small one for a part of the data."""
        if not settings.small:
            return cls(n_views=settings.n_views)
        return cls(1, 2, 64, 0.05, min(100, settings.tests or 100), settings.n_views)


def cells(settings: Settings) -> list[Cell]:
    """List the cells: one per trial, of four networks."""
    if "cifar10" not in settings.datasets:
        return []
    recipe = ResNetTraining.of(settings)
    shared = asdict(recipe) | {
        "augmentations": AUGMENTATIONS,
        "examples": settings.examples,
        "tests": settings.tests,
    }
    return [
        Cell(
            "invariance",
            f"trial-{seed}",
            "cifar10",
            shared | {"seed": seed},
            partial(compute, recipe, seed),
        )
        for seed in range(settings.trials)
    ]


def compute(recipe: ResNetTraining, seed: int, bench: Bench) -> dict[str, Any]:
    """Compute one cell."""
    return trial(bench.images("cifar10"), recipe, seed, bench.device, bench.tick)


def trial(
    images: Images,
    recipe: ResNetTraining,
    seed: int,
    device: torch.device,
    tick: Callable[[float, str], None],
) -> dict[str, Any]:
    """Train without augmentation and with each, from one start, and compare layer by layer.

    Returns
    -------
    found
        The layers; Δ_{l,T,T} / Δ_{l,T,∅} of each augmentation and layer (``ratio``), the same
        relative to the distance between examples; test accuracies; seconds of training.
    """
    units = [f"block{block}.{unit}" for block in (1, 2, 3) for unit in range(recipe.units)]
    layers = ["conv", *units, "pool", "fc"]
    sample = images.test.x[: recipe.images].float() / 255
    measure = partial(
        measure_invariance, x=sample, layers=layers, n_views=recipe.n_views, seed=0, batch_size=128
    )
    found: dict[str, Any] = {"layers": layers, "ratio": {}, "relative_ratio": {}, "accuracy": {}}
    found["training_seconds"] = {}
    before = None
    for k, (name, spec) in enumerate({"none": None, **AUGMENTATIONS}.items()):

        def part(share: float, name: str = name, k: int = k) -> None:
            tick((k + share) / (1 + len(AUGMENTATIONS)), f"trained with {name}")

        augmentation = identity() if spec is None else parse(spec)
        network, took = train(augmentation, images.train, recipe, seed, device, part)
        found["accuracy"][name] = _accuracy(network, images.test)
        found["training_seconds"][name] = took
        if before is None or spec is None:
            before = measure(network, augmentations=AUGMENTATIONS.values(), name="without")
            continue
        after = measure(network, augmentations=spec, name="with").compare(before)
        found["ratio"][name] = [row.ratio for row in after.rows]
        found["relative_ratio"][name] = [row.relative_ratio for row in after.rows]
    return found


def train(
    augmentation: Augmentation,
    data: Dataset,
    recipe: ResNetTraining,
    seed: int,
    device: torch.device,
    tick: Callable[[float], None],
) -> tuple[BlocksOfUnits, float]:
    """Train with a new view of each image in each epoch; return the network and the seconds."""
    fast = device.type == "cuda"
    classes = len(data.classes or ())
    model = seeded(lambda: BlocksOfUnits(recipe.units, data.shape[0], classes), seed).to(device)
    if fast:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # as torch types it
    y, views = data.y.to(device), FreshViews(data, augmentation, device, seed)
    order = batch_order(len(data), recipe.batch_size, recipe.epochs, seed, device)

    def loss(rows: Tensor, step: Tensor) -> Tensor:
        x = views[rows]
        if fast:
            x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            output = model(x)
        return F.cross_entropy(output.float(), y[rows])

    seconds = descend(
        model,
        loss,
        order,
        recipe.learning_rate * schedule(len(order)),
        epochs=recipe.epochs,
        momentum=0.9,
        nesterov=True,
        weight_decay=5e-4,
        begin=views.renew,
        tick=tick,
    )
    return model.eval(), seconds


def schedule(steps: int) -> Tensor:
    """Return the share of the rate at each step: up through a quarter of them, then down to 0."""
    left = torch.arange(steps, 0, -1) / steps
    return torch.minimum((1 - left) * 4 + 4 / steps, left / 0.75)


@torch.no_grad()
def _accuracy(model: BlocksOfUnits, test: Dataset) -> float:
    device, right = next(model.parameters()).device, 0
    for index in torch.arange(len(test)).split(1000):
        chosen = model(test.batch(index, device, torch.float32)).argmax(1)
        right += int((chosen == test.y[index].to(device)).sum())
    return right / len(test)
