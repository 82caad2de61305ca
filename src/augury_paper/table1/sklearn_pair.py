"""scikit-learn's own features and ridge classifier on explicitly transformed images."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifier

from augury._base.rng import Rng
from augury.augmentations import parse
from augury.data.dataset import Dataset
from augury_paper.cells import Bench
from augury_paper.claims import packed
from augury_paper.settings import Settings
from augury_paper.table1.descent import choose_gamma
from augury_paper.table1.tasks import TASKS, ImageTask, split, turned

_RIDGES = tuple(10.0**k for k in range(-7, 0))  # what single precision can tell apart


def fit_pair(bench: Bench, dataset: str, settings: Settings) -> dict[str, Any]:
    """Fit `RBFSampler` and `RidgeClassifier` on the CPU, in single precision, their own.

    λ has the most right predictions on a fifth of the images that is left out, for the first
    trial's features; choosing it is not counted in the time.
    """
    images, task = bench.images(dataset), TASKS[dataset]
    test, gamma = turned(images.test, task.turn), choose_gamma(images.train)
    n = task.n_views(settings)
    started = time.perf_counter()
    kept, held = split(images.train, task.turn)
    x, y = _views(kept, task, n, 0)
    sampler = RBFSampler(gamma=gamma, n_components=settings.n_components, random_state=0)
    ridge = _best_ridge(sampler.fit_transform(x), y, sampler.transform(_flat(held)), held)
    del x
    found: dict[str, Any] = {"selection_seconds": [time.perf_counter() - started]}
    found["ridges"] = list(_RIDGES)
    found |= {key: [] for key in ("accuracy", "seconds", "training_seconds", "ridge")}
    found |= {key: [] for key in ("processor_seconds", "training_processor_seconds")}
    counts = np.zeros(len(test), dtype=np.uint8)
    for trial in range(settings.trials):
        started, begun = time.perf_counter(), time.process_time()
        x, y = _views(images.train, task, n, trial)
        sampler = RBFSampler(gamma=gamma, n_components=settings.n_components, random_state=trial)
        features = sampler.fit_transform(x)
        model = RidgeClassifier(alpha=ridge * len(features), copy_X=False).fit(features, y)
        training, trained = time.perf_counter() - started, time.process_time() - begun
        said: Any = model.predict(sampler.transform(_flat(test)))
        right: np.ndarray = said == test.y.numpy()
        found["seconds"].append(time.perf_counter() - started)
        found["processor_seconds"].append(time.process_time() - begun)
        found["training_seconds"].append(training)
        found["training_processor_seconds"].append(trained)
        found["accuracy"].append(float(right.mean()))
        found["ridge"].append(ridge)
        counts += right
        bench.tick((trial + 1) / settings.trials, "scikit-learn")
    return found | {"gamma": gamma, "right": packed(counts)}


def _best_ridge(features: np.ndarray, y: np.ndarray, new: np.ndarray, held: Dataset) -> float:
    """Return the λ with the most right predictions: `RidgeClassifier`'s solution, from one Gram."""
    mean = features.mean(0)
    features -= mean
    targets = np.where(y[:, None] == np.arange(int(y.max()) + 1), 1, -1).astype(features.dtype)
    gram, cross = features.T @ features, features.T @ (targets - targets.mean(0))
    scores = {}
    for ridge in _RIDGES:
        shifted = gram.copy()
        shifted.flat[:: len(shifted) + 1] += ridge * len(features)
        try:
            weights = cho_solve(cho_factor(shifted, overwrite_a=True), cross)
        except LinAlgError:  # too small for single precision
            continue
        said = ((new - mean) @ weights + targets.mean(0)).argmax(1)
        scores[ridge] = float((said == held.y.numpy()).mean())
    return max(scores, key=lambda one: scores[one])


def _views(data: Dataset, task: ImageTask, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n random views of each image as rows, and their labels."""
    every = torch.arange(len(data))
    x = data.batch(every, torch.device("cpu"), torch.float32)
    views = parse(task.augmentation).views(x, n, Rng(seed, every))
    return views.flatten(0, 1).flatten(1).numpy(), np.tile(data.y.numpy(), n)


def _flat(data: Dataset) -> np.ndarray:
    x = data.batch(torch.arange(len(data)), torch.device("cpu"), torch.float32)
    return x.flatten(1).numpy()
