"""Train a ResNet with and without each augmentation, and compare how far layers' features move."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.pixels import to_bytes
from augury._base.rng import Rng
from augury.augmentations import Augmentation, identity, parse
from augury.data.dataset import Dataset
from augury.networks.invariance import measure_invariance
from augury_paper.cells import Bench, Cell, Images
from augury_paper.networks import BlocksOfUnits, seeded
from augury_paper.recorded import orders, recorded
from augury_paper.settings import AUGMENTATIONS, Settings


@dataclass(frozen=True)
class Recipe:
    """How the residual networks are trained, and how invariance is measured.

    The paper names the network and not its training. This is short: SGD with Nesterov's momentum
    0.9 and weight decay 0.0005, a rate that climbs for a quarter of the steps and falls to 0.
    """

    units: int = 9
    epochs: int = 10
    batch: int = 512
    rate: float = 0.4
    images: int = 1000
    versions: int = 16

    @classmethod
    def of(cls, settings: Settings) -> Recipe:
        """Take the network and its training whole, or a small one for a part of the data."""
        if not settings.examples:
            return cls(versions=settings.versions)
        return cls(1, 2, 64, 0.05, min(100, settings.tests or 100), settings.versions)


def cells(settings: Settings) -> list[Cell]:
    """List the cells: one a trial, of four networks."""
    if "cifar10" not in settings.datasets:
        return []
    recipe = Recipe.of(settings)
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


def compute(recipe: Recipe, seed: int, bench: Bench) -> dict[str, Any]:
    """Compute one cell."""
    return trial(bench.images("cifar10"), recipe, seed, bench.device, bench.tick)


def trial(
    images: Images,
    recipe: Recipe,
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
        measure_invariance, x=sample, layers=layers, n_views=recipe.versions, seed=0, batch_size=128
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
    recipe: Recipe,
    seed: int,
    device: torch.device,
    tick: Callable[[float], None],
) -> tuple[BlocksOfUnits, float]:
    """Train with a new version of each image in each epoch; give the network, and seconds."""
    fast = device.type == "cuda"
    classes = len(data.classes or ())
    model = seeded(lambda: BlocksOfUnits(recipe.units, data.shape[0], classes), seed).to(device)
    if fast:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # as torch types it
    y, images = data.y.to(device), torch.empty_like(data.x, device=device)
    order = orders(len(data), recipe.batch, recipe.epochs, seed, device)
    steps = len(order)
    rates = recipe.rate * schedule(steps).to(device)
    counter = torch.zeros(1, dtype=torch.int64, device=device)
    optimizer = torch.optim.SGD(
        model.parameters(),
        torch.zeros((), device=device),  # a tensor, so that a recorded step can change it
        momentum=0.9,
        nesterov=True,
        weight_decay=5e-4,
        fused=fast,
    )
    rate = optimizer.param_groups[0]["lr"]

    def step() -> None:
        rows = order.index_select(0, counter).squeeze(0)
        rate.copy_(rates.index_select(0, counter).squeeze(0))
        counter.add_(1)
        x = images[rows].float() / 255
        if fast:
            x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            output = model(x)
        optimizer.zero_grad()
        F.cross_entropy(output.float(), y[rows]).backward()
        optimizer.step()

    kept = [*model.parameters(), *model.buffers(), counter]
    _draw(augmentation, data, seed, 0, images)
    run = recorded(step, optimizer, kept, device)
    started, per_epoch = time.perf_counter(), steps // recipe.epochs
    for done in range(1, steps + 1):
        run()
        if done % per_epoch == 0 and done < steps:
            _draw(augmentation, data, seed, done // per_epoch, images)
        if done % 10 == 0:
            tick(done / steps)
    if fast:
        torch.cuda.synchronize(device)
    return model.eval(), time.perf_counter() - started


def schedule(steps: int) -> Tensor:
    """Give the share of the rate at each step: up through a quarter of them, then down to 0."""
    left = torch.arange(steps, 0, -1) / steps
    return torch.minimum((1 - left) * 4 + 4 / steps, left / 0.75)


def _draw(augmentation: Augmentation, data: Dataset, seed: int, epoch: int, images: Tensor) -> None:
    """Put a version of each example into `images`, as bytes; one of its own in each epoch."""
    for index in torch.arange(len(data)).split(4096):
        x = data.batch(index, images.device, torch.float32)
        rng = Rng(seed, index.to(images.device) + epoch * len(data))
        version = augmentation.views(x, 1, rng)[0]
        images[index[0] : index[-1] + 1] = to_bytes(version)


@torch.no_grad()
def _accuracy(model: BlocksOfUnits, test: Dataset) -> float:
    device, right = next(model.parameters()).device, 0
    for index in torch.arange(len(test)).split(1000):
        chosen = model(test.batch(index, device, torch.float32)).argmax(1)
        right += int((chosen == test.y[index].to(device)).sum())
    return right / len(test)
