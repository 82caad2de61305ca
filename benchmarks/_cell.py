"""What the benchmarks of forecasts share: options, a small set of data, and the trial of a cell.

A cell is one set of data with one planned training: what every candidate really gained, and what
the trial showed before.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

from augury.augmentations import Augmentation, identity
from augury.data import Dataset
from augury.forecasting.forecast import UNEQUAL, Forecast
from augury.forecasting.training import train_together
from augury.forecasting.training.grouped import RATES
from augury.forecasting.training.members import Fold, Schedule
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.training.runners import OneByOne, OwnRunner
from augury.forecasting.trial import Trial, run_folds

Cell = dict[str, Any]


def make_parser(
    text: str | None, commands: Sequence[str], results: Path, **defaults: Any
) -> argparse.ArgumentParser:
    """Return a parser of a command and the options of every benchmark of forecasts."""
    parser = argparse.ArgumentParser(description=(text or "").splitlines()[0])
    parser.add_argument("command", nargs="?", choices=commands)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--network", default="cnn")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=results, help="directory of known results")
    parser.add_argument("--out", help="directory for results, or file for a page")
    parser.add_argument("--quick", action="store_true", help="one small cell, nothing is kept")
    parser.set_defaults(**defaults)
    return parser


def save_digits(folder: Path, examples: int) -> Path:
    """Write scikit-learn's digits to a file, this many of them to train on."""
    digits: Any = load_digits()
    x, y = (15 * digits.images).astype(np.uint8), digits.target
    path = folder / "digits.npz"
    np.savez(path, x_train=x[:examples], y_train=y[:examples], x_test=x[600:], y_test=y[600:])
    return path


def train_all(
    train: Dataset,
    test: Dataset,
    candidates: Sequence[Augmentation],
    network: str | OwnNetwork,
    *,
    epochs: int,
    seeds: int,
    seed: int = 0,
    device: torch.device,
) -> torch.Tensor:
    """Return which test examples are predicted right: ``(tests, candidates, seeds)``.

    No augmentation, if it is among the candidates, must be the first of them. A GPU trains all as
    one grouped network, a CPU one on each core.
    """
    if isinstance(network, str) and device.type == "cuda":
        return train_together(
            train, test, candidates, architecture=network, epochs=epochs, seeds=seeds, seed=seed,
            device=device,
        ).right  # fmt: skip
    x, y = (torch.cat([getattr(data, name) for data in (train, test)]) for name in "xy")
    whole, held = torch.arange(len(y)).split([len(train), len(test)])
    folds = [Fold(whole, held, seed, number) for number in range(seeds)]
    rate = RATES[network] if isinstance(network, str) else network.rate
    runner = (OneByOne if isinstance(network, str) else OwnRunner)(
        network, replace(train, x=x, y=y), Schedule(epochs, rate=rate), device, lambda now: None
    )
    others = [candidate for candidate in candidates if candidate != identity()]
    clean = folds if len(others) < len(candidates) else []
    tried, plain = runner.run(others, folds if others else [], clean)
    parts = [found for found in (plain, tried) if found]
    outputs = [torch.cat(each, 1) for each in zip(*parts, strict=True)]
    return torch.stack([out.argmax(-1).cpu() == test.y[:, None] for out in outputs], 2)


def train_missing(
    known: Path,
    train: Dataset,
    test: Dataset,
    candidates: Sequence[Augmentation],
    parts: torch.Tensor,
    *,
    seeds: int,
    **options: Any,
) -> Cell:
    """Return the accuracy in points of each candidate and seed, and of no augmentation.

    ``"tested"`` has the same for each of the `parts` of the test examples. Seeds that a cell in the
    file `known` has are not trained again.
    """
    specs = ["identity", *map(repr, candidates)]
    before = json.loads(known.read_text()) if known.exists() else {}
    if not set(specs) <= set(before.get("accuracy", ())):
        before = {"accuracy": {spec: [] for spec in specs}}
    done = len(before["accuracy"]["identity"])
    if seeds <= done:
        return {name: before[name] for name in ("accuracy", "tested") if name in before}
    found = train_together(
        train, test, [identity(), *candidates], seeds=seeds - done, seed=done, **options
    )
    return add_seeds(before, found.right, specs, parts, test.y, train.y)


def add_seeds(
    cell: Cell,
    right: torch.Tensor,
    specs: Sequence[str],
    parts: torch.Tensor,
    y: torch.Tensor,
    trained: torch.Tensor,
) -> Cell:
    """Return the accuracies of a cell with those of more seeds behind them."""
    whole = 100 * score_right(right, y, trained)
    each = [parts == part for part in parts.unique()]
    by_part = torch.stack([100 * score_right(right[own], y[own], trained) for own in each], -1)
    before = {"accuracy": cell["accuracy"], "tested": cell.get("tested", {})}
    return {
        name: {
            spec: [*before[name].get(spec, ()), *rounded(new.tolist())]
            for spec, new in zip(specs, values, strict=True)
        }
        for name, values in (("accuracy", whole), ("tested", by_part))
    }


def rounded(value: Any) -> Any:
    """Round points to a thousandth, in lists of any depth."""
    return [rounded(v) for v in value] if isinstance(value, list) else round(value, 3)


def score_right(right: torch.Tensor, y: torch.Tensor, trained: torch.Tensor) -> torch.Tensor:
    """Return the accuracy of ``(examples, ...)`` predictions, as a forecast means it.

    Classes count alike where those trained on are very unequal.
    """
    counts = torch.bincount(trained)
    counts = counts[counts > 0]
    if counts.max() < UNEQUAL * counts.min():
        return right.double().mean(0)
    return torch.stack([right[y == c].double().mean(0) for c in y.unique()]).mean(0)


def run_trial(
    cell: Cell,
    train: Dataset,
    candidates: Sequence[Augmentation],
    trial: Trial,
    device: torch.device,
) -> dict[str, np.ndarray]:
    """Run a trial, write what it showed into the cell, and return what each example showed."""
    started = time.perf_counter()
    folds = run_folds(train, candidates, trial, range(trial.folds), seed=0, device=device)
    classes = len(train.classes or ())
    forecast = Forecast(
        folds, train.y, classes, trained=trial.examples, planned=cell["examples"],
        pooled=train.kind == "series",
    )  # fmt: skip
    cell["trial"] = {**summarise(forecast, [repr(a) for a in candidates]), **asdict(trial)}
    cell["seconds"] = [*cell["seconds"], round(time.perf_counter() - started, 1)]
    return {
        f"{trial.network}/{k}/{part}": getattr(fold, part).numpy()
        for k, fold in enumerate(folds)
        for part in ("index", "losses", "right", "replicas", "half")
    }


def summarise(forecast: Forecast, specs: Sequence[str]) -> dict[str, Any]:
    """Return what a trial says of its plan, and by how much each candidate moved the log-odds."""
    moved = [forecast.shift(k) for k in range(len(forecast))]
    return {
        "tried": forecast.baseline.tried, "expected": forecast.baseline.expected,
        "rate": forecast.rate, "learnt": forecast.baseline.learnt,
        "shift": {s: m for s, (m, _) in zip(specs, moved, strict=True)},
        "error": {s: e for s, (_, e) in zip(specs, moved, strict=True)},
    }  # fmt: skip
