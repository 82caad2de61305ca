"""Averaged features against traditional augmentation: seconds of fitting, and accuracy.

    python benchmarks/kernel_speed.py [--size 10000] [--rounds 3] [--data FOLDER] [--out FOLDER]

Kernel classifiers of MNIST in closed form on a CPU, with as many features as images: trained on
16 random views of every image (`rotation(15)`), on features averaged over the nodes of a
quadrature rule, and without augmentation. All have the same features, bandwidth, precision, solver
and stopping. λ is chosen for every way by the same rule: the least squared error of the way's own
predictions on a fifth of the training images, left out and turned as test images are. The choice
is counted for no way, and its own time is in "choice"; "gcv" is the time of averaged features that
choose λ by generalised cross-validation while they are fitted.
The ways take turns, so that a disturbance of the machine meets all of them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from _result import add_out, environment, save

from augury._base.devices import has_bfloat16
from augury.data.dataset import Dataset
from augury.kernel import AugmentedKernelClassifier
from augury.kernel.solvers import RidgeSolution
from augury_paper.images import Library, default_folder
from augury_paper.settings import CPU
from augury_paper.table1.closed import TraditionalClassifier
from augury_paper.table1.descent import choose_gamma
from augury_paper.table1.tasks import TASKS, split, turned

TASK = TASKS["mnist"]
VIEWS = 16
NODES = (16, 4)
RIDGES = tuple(10.0 ** (k / 2) for k in range(-12, -3))
"""Half decades from 1e-6 to 1e-2."""


class Averaged(AugmentedKernelClassifier):
    """Keep the solver's solution."""

    found: RidgeSolution

    def _solve_ridge(self, *args: Any, **kwargs: Any) -> RidgeSolution:
        self.found = super()._solve_ridge(*args, **kwargs)
        return self.found


class Traditional(TraditionalClassifier):
    """Keep the solver's solution."""

    found: RidgeSolution

    def _solve_ridge(self, *args: Any, **kwargs: Any) -> RidgeSolution:
        self.found = super()._solve_ridge(*args, **kwargs)
        return self.found


def make(way: str, **options: Any) -> Averaged | Traditional:
    """Return the classifier of a way: "16 views", "4 nodes", "none"."""
    if way == "none":
        return Averaged("identity", **options)
    number, kind = way.split()
    if kind == "nodes":
        return Averaged(TASK.augmentation, n_views=int(number), **options)
    return Traditional(
        TASK.augmentation, n_views=int(number), objective="exact", prediction="plain", **options
    )


def choose_ridge(
    way: str, kept: Dataset, held: Dataset, **options: Any
) -> tuple[float, dict[float, float]]:
    """Return the λ of least squared error on images left out, and the error of each λ.

    All solutions lie in the Krylov space of the least λ, which is the largest space.
    """
    least = RIDGES[0]
    model = make(way, ridge=least, **options).fit(kept.x, kept.y)
    space, targets = model.found.space, torch.nn.functional.one_hot(held.y).double()
    assert space is not None
    along = space.project(model.found.weights) * (space.values + least).unsqueeze(1)
    errors = {}
    for ridge in RIDGES:
        model._weights = space.lift(along / (space.values + ridge).unsqueeze(1))
        errors[ridge] = float((model._outputs(held.x) - targets).square().sum(1).mean())
    return min(errors, key=lambda ridge: errors[ridge]), errors


def measure(model: Averaged | Traditional, train: Dataset, test: Dataset) -> dict[str, Any]:
    """Fit and predict once."""
    started = time.perf_counter()
    model.fit(train.x, train.y)
    fitted = time.perf_counter()
    right = model.predict(test.x) == test.y.numpy()
    return {
        "fit": round(fitted - started, 3),
        "predict": round(time.perf_counter() - fitted, 3),
        "accuracy": round(100 * float(right.mean()), 2),
        "ridge": model.ridge_,
        "steps": model.found.steps,
    }


def ratios(runs: list[dict[str, Any]], views: str) -> dict[str, list[float]]:
    """Return how many times faster each way is fitted than random views, round by round."""
    slow = {run["round"]: run["fit"] for run in runs if run["way"] == views}
    found: dict[str, list[float]] = {}
    for run in runs:
        if run["way"] != views and run["round"] in slow:
            found.setdefault(run["way"], []).append(round(slow[run["round"]] / run["fit"], 2))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder with MNIST")
    parser.add_argument("--size", type=int, default=10_000, help="images, and features")
    parser.add_argument("--rounds", type=int, default=3)
    add_out(parser)
    options = parser.parse_args()
    settings = replace(CPU, examples=options.size, n_components=options.size)
    images = Library(options.data, settings).images("mnist")
    test, gamma = turned(images.test, TASK.turn), choose_gamma(images.train)
    kept, held = split(images.train, TASK.turn)
    short = has_bfloat16(torch.device("cpu"))
    shared: dict[str, Any] = {
        "n_components": options.size, "gamma": gamma, "device": "cpu",
        "precision": "bfloat16" if short else "float32",
    }  # fmt: skip
    views = f"{VIEWS} views"
    ways = [views, *(f"{nodes} nodes" for nodes in NODES), "none"]
    result: dict[str, Any] = {"environment": environment(torch.device("cpu"))}
    result |= {"settings": shared | {"augmentation": TASK.augmentation, "test": TASK.turn}}
    chosen, result["held_out"], result["choice"] = {}, {}, {}
    for way in ways:
        started = time.perf_counter()
        chosen[way], errors = choose_ridge(way, kept, held, random_state=0, **shared)
        result["choice"][way] = round(time.perf_counter() - started, 2)
        result["held_out"][way] = {f"{at:.1e}": round(one, 5) for at, one in errors.items()}
        print(f"{way}: λ {chosen[way]:.1e}, squared errors {result['held_out'][way]}", flush=True)
    result["runs"] = runs = []
    for number in range(options.rounds):
        for way in ways:
            for ridge in [chosen[way], "gcv"] if way.endswith("nodes") else [chosen[way]]:
                model = make(way, ridge=ridge, random_state=number, **shared)
                name = f"{way}, gcv" if ridge == "gcv" else way
                runs.append({"round": number, "way": name} | measure(model, images.train, test))
                print(runs[-1], flush=True)
        result["times_faster"] = ratios(runs, views)
        save(options.out, "kernel_speed", result)
    for way, found in result["times_faster"].items():
        seconds = [run["fit"] for run in runs if run["way"] == way]
        accuracy = statistics.mean(run["accuracy"] for run in runs if run["way"] == way)
        print(f"{way}: {seconds} s, {accuracy:.2f} %, {found} times as fast as {views}")


if __name__ == "__main__":
    main()
