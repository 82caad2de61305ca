"""Figure 2: accuracy against kernel target alignment, for the transformations of the appendix.

Fourier features with a linear head and LeNet are trained with each transformation by the paper's
descent, all trials side by side; the alignment is known before any training, and so is the gain
that our own score, a brief trial, expects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from augury.augmentations import parse
from augury.features import FourierFeatures
from augury.forecasting.effort import CPU, DECIDES
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.scores.base import Setting
from augury.forecasting.scores.trial import TrialScore
from augury.statistics import Alignment, jackknife
from augury_paper.alignment.models import frequencies, train_heads, train_lenets
from augury_paper.cells import Bench, Cell
from augury_paper.settings import Settings
from augury_paper.table1.descent import choose_gamma

_TRIED = 5000  # images that a trial may choose from, as `augury rank` does
DATASETS = ("mnist", "cifar10")
_GROUPS = 10  # left out in turn, for the alignment's error


def transformations(dataset: str) -> tuple[str, ...]:
    """Return the appendix's list, no augmentation first."""
    degrees = 15 if dataset == "mnist" else 5
    return (
        "identity",
        f"rotation({degrees})",
        "blur(0.5,2.0)",
        "horizontal_flip",
        "flips",
        "brightness(0.25)",
        "contrast(0.35)",
    )


def cells(settings: Settings) -> list[Cell]:
    """List the pieces: both scores, and each model with all transformations and trials."""
    found = []
    for dataset in DATASETS:
        if dataset not in settings.datasets:
            continue
        specs = transformations(dataset)
        data = {"examples": settings.examples, "tests": settings.tests}
        descent = {
            "trials": settings.trials,
            "learning_rate": settings.learning_rate,
            "momentum": settings.momentum,
            "batch_size": settings.batch_size,
            "epochs": settings.epochs,
        }
        shared = {"n_components": settings.n_components, "n_views": settings.n_views}
        add = partial(_cell, found, dataset, settings)
        add("alignment", {**data, **shared, "specs": specs}, _alignments, specs)
        trial = {"epochs": settings.epochs, "effort": _effort(settings)}
        add("trial", {**data, **trial, "specs": specs}, _trial, specs)
        trained = {**data, **descent, "specs": specs}
        of_features = {"n_components": settings.n_components, "size": settings.size}
        add("rbf", {**trained, **of_features}, _rbf, specs)
        add("lenet", trained, _lenet, specs)
    return found


def _cell(
    found: list[Cell],
    dataset: str,
    settings: Settings,
    name: str,
    setting: dict[str, Any],
    work: Any,
    specs: tuple[str, ...],
) -> None:
    run = partial(work, dataset=dataset, specs=specs, settings=settings)
    found.append(Cell("alignment", f"{dataset}-{name}", dataset, setting, run))


@torch.no_grad()
def _alignments(
    bench: Bench, dataset: str, specs: tuple[str, ...], settings: Settings
) -> dict[str, Any]:
    """Measure the alignment of each transformation, with its jackknife error over examples."""
    data = bench.images(dataset).train
    gamma = choose_gamma(data)
    phi = FourierFeatures(settings.n_components, gamma=gamma)
    phi.fit(data.batch(torch.arange(2), bench.device, torch.float32))
    setting = Setting(data, phi, settings.n_views, 0, bench.device)
    targets = data.targets()
    values, errors = [], []
    for k, spec in enumerate(specs):
        statistic = Alignment(groups=_GROUPS)
        for orbit, index in setting.orbits(parse(spec), _GROUPS):
            statistic.update(orbit, targets[index], index)
        found = statistic.result()
        values.append(found.value)
        errors.append(jackknife(found.value, found.replicates).error)
        bench.tick((k + 1) / len(specs), spec)
    return {"gamma": gamma, "specs": list(specs), "alignment": values, "error": errors}


def _trial(
    bench: Bench, dataset: str, specs: tuple[str, ...], settings: Settings
) -> dict[str, Any]:
    """Ask our own score for the gain of each transformation, in points."""
    data = bench.images(dataset).train.subsample(_TRIED, 0)
    plan = TrainingPlan(epochs=settings.epochs)
    setting = Setting(data, None, 1, 0, bench.device, plan=plan, effort=_effort(settings))
    score = TrialScore(setting, lambda done, total, now: bench.tick(done / total, now))
    found = score.judge_all([parse(spec) for spec in specs[1:]]).candidates
    return {"specs": list(specs), "gain": [0.0, *(judgement.gain for judgement in found)]}


def _effort(settings: Settings) -> int:
    """Return the effort of the trial: that of a CPU, and less on few images, for a quick look."""
    return CPU if not settings.small else DECIDES


def _rbf(bench: Bench, dataset: str, specs: tuple[str, ...], settings: Settings) -> dict[str, Any]:
    """Train heads on the same Fourier features with each transformation, trials together."""
    images, device = bench.images(dataset), bench.device
    gamma = choose_gamma(images.train)
    omega = frequencies(images.train.shape, gamma, settings, device)
    accuracy = [
        train_heads(images, parse(spec), omega, settings, device, _part(bench, specs, k))
        for k, spec in enumerate(specs)
    ]
    return {"specs": list(specs), "accuracy": accuracy}


def _lenet(
    bench: Bench, dataset: str, specs: tuple[str, ...], settings: Settings
) -> dict[str, Any]:
    """Train LeNet with each transformation, trials together."""
    images = bench.images(dataset)
    accuracy = [
        train_lenets(images, parse(spec), settings, bench.device, _part(bench, specs, k))
        for k, spec in enumerate(specs)
    ]
    return {"specs": list(specs), "accuracy": accuracy}


def _part(bench: Bench, specs: tuple[str, ...], k: int) -> Callable[[float], None]:
    """Return the tick of the k-th transformation."""
    return lambda share: bench.tick((k + share) / len(specs), specs[k])
