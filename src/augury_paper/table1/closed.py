"""The table in closed form: kernel ridge regression on the same features for every method.

λ is chosen for the way a method predicts. Averaged features and no augmentation have generalised
cross-validation. Traditional augmentation is trained on random views and predicts from an image as
it is, so its λ has the least squared error of such predictions on a fifth of the training images,
left out; this choice is not counted in its time.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augury._base.devices import has_bfloat16, tensor_cores
from augury._base.rng import Rng
from augury.augmentations import parse
from augury.features import AugmentedFourier
from augury.features.orbit import Orbit
from augury.kernel import AugmentedKernelClassifier
from augury.kernel.inputs import to_floats
from augury.kernel.solvers import RidgeSolution
from augury.kernel.solvers.gram import accumulate
from augury_paper.cells import Bench
from augury_paper.claims import packed
from augury_paper.settings import Settings
from augury_paper.sgd import now
from augury_paper.table1.descent import choose_gamma
from augury_paper.table1.sklearn_pair import fit_pair
from augury_paper.table1.tasks import TASKS, split, turned

RIDGES = tuple(10.0**k for k in range(-9, 0))
"""The λ that plain predictions choose from."""


class TraditionalClassifier(AugmentedKernelClassifier):
    """Trained on explicitly transformed images; new images are taken as they are.

    The same features, solver and stopping as `AugmentedKernelClassifier`: the solution of the
    exact objective over n random views of each image, in blocks as large as those of its rivals.
    """

    def _make_features(self, *, shared: bool = False, short: bool = False) -> AugmentedFourier:
        psi = super()._make_features(shared=shared, short=short)
        psi.augmentation = parse("identity")
        return psi

    def _width(self) -> int:
        return self.n_views

    def _block(
        self, x: Tensor, index: Tensor, first: int, total: int
    ) -> tuple[Orbit, Tensor | None]:
        phi, like = self._psi.phi, self._psi.weights
        assert like is not None
        examples = to_floats(x[int(index[0]) : int(index[-1]) + 1], like)
        rng = Rng(self.seed_, (index + first).to(examples.device))
        views = self.augmentation_.views(examples, self.n_views, rng)
        features = phi(views.flatten(0, 1)).unflatten(0, views.shape[:2])
        return Orbit(features, like.new_full((self.n_views,), 1 / self.n_views)), None

    def average_at_prediction(self, nodes: int) -> None:
        """Predict from now on by averaged features, as `AugmentedKernelClassifier` does."""
        psi = self._psi
        assert psi.weights is not None
        psi.augmentation, psi.n_views = self.augmentation_, nodes
        psi.prepare(psi.weights)
        self.prediction = "averaged"


class RidgePath(TraditionalClassifier):
    """The same for every λ of `RIDGES`, from one pass over the data."""

    path: dict[float, Tensor]

    def _solve_ridge(self, x: Any, y: Any, progress: Any, *, short: bool) -> RidgeSolution:
        with tensor_cores(short):
            sums = accumulate(self._batches(x, y, progress), gram=True)
        assert sums.gram is not None
        self.path = {}
        for ridge in RIDGES:
            gram = sums.gram.double()
            gram.diagonal().add_(ridge)
            factor, info = torch.linalg.cholesky_ex(gram)
            if not int(info):  # products are too rough for the least λ
                cross = sums.cross.double()
                self.path[ridge] = torch.cholesky_solve(cross, factor).to(sums.cross)
        return RidgeSolution(self.path[RIDGES[-1]], RIDGES[-1], math.nan, "cholesky")

    def best_ridge(self, x: Tensor, y: Tensor) -> float:
        """Return the λ with the least squared error of plain predictions."""
        targets = torch.nn.functional.one_hot(y, len(self.classes_)).double()
        errors = {}
        for ridge, weights in self.path.items():
            self._weights = weights
            errors[ridge] = float((self._outputs(x) - targets).square().sum())
        return min(errors, key=lambda ridge: errors[ridge])


def classifier(
    method: str, dataset: str, settings: Settings, **options: Any
) -> AugmentedKernelClassifier:
    """Return the classifier of one method, with the paper's features and the task's rotations."""
    task = TASKS[dataset]
    options = {"n_components": settings.n_components} | options
    if method == "none":
        return AugmentedKernelClassifier("identity", **options)
    if method in ("traditional", "path"):
        kind = TraditionalClassifier if method == "traditional" else RidgePath
        return kind(
            task.augmentation,
            n_views=task.n_views(settings),
            objective="exact",
            prediction="plain",
            **options,
        )
    nodes = task.n_views(settings) if method == "equal" else task.n_nodes(settings)
    objective = method if method in ("tangent", "exact") else "first-order"
    return AugmentedKernelClassifier(
        task.augmentation, n_views=nodes, objective=objective, **options
    )


def by_closed_form(bench: Bench, dataset: str, method: str, settings: Settings) -> dict[str, Any]:
    """Fit and predict from arrays in host memory, once for each trial's frequencies.

    ``training_seconds`` are those of fitting, ``seconds`` those up to predictions. Traditional
    augmentation predicts from new images as they are, and ``averaged`` is its accuracy if it
    averaged their features; the exact objective averages, and ``plain`` is its accuracy if not.
    """
    if method == "sklearn":
        return fit_pair(bench, dataset, settings)
    images, device, task = bench.images(dataset), bench.device, TASKS[dataset]
    test, gamma = turned(images.test, task.turn), choose_gamma(images.train)
    fast = device.type == "cuda"
    precision = "tf32" if fast else "bfloat16" if has_bfloat16(device) else "float32"
    make = partial(
        classifier, dataset=dataset, settings=settings, gamma=gamma, device=str(device),
        precision=precision,
    )  # fmt: skip
    found: dict[str, Any] = {"gamma": gamma}
    found |= {key: [] for key in ("accuracy", "seconds", "training_seconds", "ridge")}
    options: dict[str, Any] = {}
    if method == "traditional":
        kept, held = split(images.train, task.turn)
        started = now(device)
        path = make("path", random_state=0).fit(kept.x, kept.y)
        assert isinstance(path, RidgePath)
        options["ridge"] = path.best_ridge(held.x, held.y)
        found["selection_seconds"] = [now(device) - started]
        del path
    counts = np.zeros(len(test), dtype=np.uint8)
    for trial in [-1, *range(settings.trials)] if fast else range(settings.trials):
        model = make(method, random_state=max(0, trial), **options)
        started = now(device)
        model.fit(images.train.x, images.train.y)
        training = now(device) - started
        right = model.predict(test.x) == test.y.numpy()
        seconds = now(device) - started
        if trial >= 0:  # the first warms a GPU up
            counts += right
            found["accuracy"].append(float(right.mean()))
            found["seconds"].append(seconds)
            found["training_seconds"].append(training)
            found["ridge"].append(model.ridge_)
            if isinstance(model, TraditionalClassifier):
                model.average_at_prediction(task.n_nodes(settings))
                found.setdefault("averaged", []).append(_accuracy(model, test))
            elif method == "exact":
                model.prediction = "plain"
                found.setdefault("plain", []).append(_accuracy(model, test))
        bench.tick((trial + 1) / settings.trials, method)
    return found | {"right": packed(counts)}


def _accuracy(model: AugmentedKernelClassifier, test: Any) -> float:
    return float((model.predict(test.x) == test.y.numpy()).mean())
