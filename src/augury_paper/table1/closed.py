"""The table in closed form: kernel ridge regression on the same features for every method.

λ is chosen for the way a method is trained and predicts. Averaged features and no augmentation have
generalised cross-validation, which counts in their time. Views of one image are no independent
examples, so what is trained on several of them, traditional augmentation and the exact objective,
has the λ of least squared error of its own predictions on a fifth of the training images, left
out; this choice is not counted in the time. Averaged features are also fitted with a λ chosen by
that rule, to tell what is gained by averaging from what is gained by another λ.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from augury._base.devices import has_bfloat16, tensor_cores
from augury._base.rng import Rng
from augury.augmentations import parse
from augury.features import AugmentedFourier
from augury.features.orbit import Orbit
from augury.kernel import AugmentedKernelClassifier
from augury.kernel.inputs import to_floats
from augury.kernel.solvers import RidgeSolution, solve_ridge
from augury_paper.cells import Bench
from augury_paper.claims import packed
from augury_paper.settings import Settings
from augury_paper.sgd import now
from augury_paper.table1.descent import choose_gamma
from augury_paper.table1.sklearn_pair import fit_pair
from augury_paper.table1.tasks import HELD_OUT, TASKS, split, turned


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


class RidgePath(AugmentedKernelClassifier):
    """The same for every λ of `ridges`: all solutions lie in the Krylov space of the least."""

    ridges: tuple[float, ...]
    found: RidgeSolution

    def _solve_ridge(self, x: Any, y: Any, progress: Any, *, short: bool) -> RidgeSolution:
        with tensor_cores(short), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the least λ may be too small
            self.found = solve_ridge(
                self._batches(x, y, progress),
                ridge=self.ridges[0],
                gram_bytes=self._gram_bytes,
                method="krylov",
                seed=self.seed_,
            )
        return self.found

    def best_ridge(self, x: Tensor, y: Tensor) -> float:
        """Return the λ with the least squared error of predictions as this model makes them."""
        classes, space, bias = len(self.classes_), self.found.space, self._bias
        assert space is not None
        cross, values = space.start()[:, :classes], space.values.unsqueeze(1)
        self._weights = torch.cat([space.lift(cross / (values + one)) for one in self.ridges], 1)
        self._bias = bias.repeat(len(self.ridges))
        outputs = self._outputs(x).unflatten(1, (len(self.ridges), classes))
        targets = torch.nn.functional.one_hot(y, classes).double().unsqueeze(1)
        errors = (outputs - targets).square().sum((0, 2))
        self._weights, self._bias = self.found.weights, bias
        return self.ridges[int(errors.argmin())]


class TraditionalPath(RidgePath, TraditionalClassifier):
    """`TraditionalClassifier` for every λ."""


def classifier(
    method: str, dataset: str, settings: Settings, *, path: bool = False, **options: Any
) -> AugmentedKernelClassifier:
    """Return the classifier of one method, with the paper's features and the task's rotations.

    With `path` it is a `RidgePath`, which chooses λ by images left out.
    """
    task = TASKS[dataset]
    options = {"n_components": settings.n_components} | options
    if method == "none":
        return AugmentedKernelClassifier("identity", **options)
    if method == "traditional":
        kind = TraditionalPath if path else TraditionalClassifier
        options |= {"objective": "exact", "prediction": "plain"}
    else:
        kind = RidgePath if path else AugmentedKernelClassifier
        options["objective"] = method if method in ("tangent", "exact") else "first-order"
    many = method in ("traditional", "equal")
    views = task.n_views(settings) if many else task.n_nodes(settings)
    model = kind(task.augmentation, n_views=views, **options)
    if isinstance(model, RidgePath):
        model.ridges = task.ridges
    return model


def by_closed_form(bench: Bench, dataset: str, method: str, settings: Settings) -> dict[str, Any]:
    """Fit and predict from arrays in host memory, once for each trial's frequencies.

    ``training_seconds`` are those of fitting, ``seconds`` those up to predictions; on a CPU
    ``…processor_seconds`` are the same by the time of all threads, in which other work on the
    machine counts for less. Traditional
    augmentation predicts from new images as they are, and ``averaged`` is its accuracy if it
    averaged their features; the exact objective averages, and ``plain`` is its accuracy if not.
    ``held_out`` is the accuracy of averaged features with ``held_out_ridge``, the λ that
    images left out choose for them.
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
    if method in HELD_OUT:
        kept, held = split(images.train, task.turn)
        started = now(device)
        path = make(method, path=True, random_state=0).fit(kept.x, kept.y)
        assert isinstance(path, RidgePath)
        chosen = path.best_ridge(held.x, held.y)
        found |= {"ridges": list(task.ridges), "selection_seconds": [now(device) - started]}
        del path
        if HELD_OUT[method]:
            options["ridge"] = chosen
        else:
            found |= {"held_out_ridge": chosen, "held_out": []}
    counts = np.zeros(len(test), dtype=np.uint8)
    for trial in [-1, *range(settings.trials)] if fast else range(settings.trials):
        model = make(method, random_state=max(0, trial), **options)
        started, begun = now(device), time.process_time()
        model.fit(images.train.x, images.train.y)
        training, trained = now(device) - started, time.process_time() - begun
        right = model.predict(test.x) == test.y.numpy()
        seconds, worked = now(device) - started, time.process_time() - begun
        if trial >= 0:  # the first warms a GPU up
            counts += right
            found["accuracy"].append(float(right.mean()))
            found["seconds"].append(seconds)
            found["training_seconds"].append(training)
            if not fast:
                found.setdefault("processor_seconds", []).append(worked)
                found.setdefault("training_processor_seconds", []).append(trained)
            found["ridge"].append(model.ridge_)
            if isinstance(model, TraditionalClassifier):
                model.average_at_prediction(task.n_nodes(settings))
                found.setdefault("averaged", []).append(_accuracy(model, test))
            elif method == "exact":
                model.prediction = "plain"
                found.setdefault("plain", []).append(_accuracy(model, test))
            elif "held_out" in found:
                other = make(method, random_state=trial, ridge=found["held_out_ridge"])
                other.fit(images.train.x, images.train.y)
                found["held_out"].append(_accuracy(other, test))
        bench.tick((trial + 1) / settings.trials, method)
    return found | {"right": packed(counts)}


def _accuracy(model: AugmentedKernelClassifier, test: Any) -> float:
    return float((model.predict(test.x) == test.y.numpy()).mean())
