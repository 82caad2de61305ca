"""The same table by the closed form: kernel ridge regression, λ by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from augury._base.devices import has_bfloat16
from augury._base.rng import Rng
from augury.augmentations import parse
from augury.features import AugmentedFourier
from augury.features.orbit import Orbit
from augury.kernel import AugmentedKernelClassifier
from augury.kernel.inputs import to_floats
from augury_paper.cells import Bench
from augury_paper.settings import Settings
from augury_paper.table1.descent import choose_gamma
from augury_paper.table1.tasks import TASKS, now, turned


class TraditionalClassifier(AugmentedKernelClassifier):
    """Trained on explicitly transformed images; new images are taken as they are.

    The same features, solver and stopping as `AugmentedKernelClassifier`: the solution of the
    exact objective over n random versions of each image, in blocks as large as those of its
    rivals.
    """

    def _make_features(self, *, shared: bool = False, short: bool = False) -> AugmentedFourier:
        psi = super()._make_features(shared=shared, short=short)
        psi.augmentation = parse("identity")
        return psi

    def _width(self) -> int:
        return self.n_views

    def _block(self, x: Tensor, index: Tensor) -> tuple[Orbit, Tensor | None]:
        phi, like = self._psi.phi, self._psi.weights
        assert like is not None
        examples = to_floats(x[int(index[0]) : int(index[-1]) + 1], like)
        rng = Rng(self.seed_, index.to(examples.device))
        versions = self.augmentation_.views(examples, self.n_views, rng)
        features = phi(versions.flatten(0, 1)).unflatten(0, versions.shape[:2])
        return Orbit(features, like.new_full((self.n_views,), 1 / self.n_views)), None

    def average_at_prediction(self, nodes: int) -> None:
        """Predict from now on by averaged features, as `AugmentedKernelClassifier` does."""
        psi = self._psi
        assert psi.weights is not None
        psi.augmentation, psi.n_views = self.augmentation_, nodes
        psi.prepare(psi.weights)
        self.prediction = "averaged"


def classifier(
    way: str, dataset: str, settings: Settings, **options: Any
) -> AugmentedKernelClassifier:
    """Give the classifier of one way, with the paper's features and the data's augmentation."""
    task = TASKS[dataset]
    options = {"n_components": settings.features} | options
    if way == "none":
        return AugmentedKernelClassifier("identity", **options)
    if way == "traditional":
        return TraditionalClassifier(
            task.augmentation,
            n_views=task.versions(settings),
            objective="exact",
            prediction="plain",
            **options,
        )
    objective = "first-order" if way == "augmented" else "tangent"
    return AugmentedKernelClassifier(
        task.augmentation, n_views=task.rule(settings), objective=objective, **options
    )


def by_closed_form(
    bench: Bench, dataset: str, way: str, settings: Settings, trials: Sequence[int] | None = None
) -> dict[str, Any]:
    """Fit and predict from arrays in host memory, once for each trial's frequencies.

    All of the settings' trials, or those that are given.

    ``training_seconds`` are those of fitting alone, ``seconds`` those up to predictions.
    Traditional augmentation predicts from new images as they are; ``averaged`` is its accuracy if
    it averaged their features too, as its rivals do.
    """
    images, device = bench.images(dataset), bench.device
    test = turned(images.test, TASKS[dataset].turn)
    gamma = choose_gamma(images.train)
    found: dict[str, Any] = {"gamma": gamma}
    found |= {key: [] for key in ("accuracy", "seconds", "training_seconds", "ridge")}
    fast = device.type == "cuda"
    precision = "tf32" if fast else "bfloat16" if has_bfloat16(device) else "float32"
    trials = range(settings.trials) if trials is None else trials
    for trial in [-1, *trials] if fast else trials:  # the first warms a GPU up
        model = classifier(
            way,
            dataset,
            settings,
            gamma=gamma,
            random_state=max(0, trial),
            device=str(device),
            precision=precision,
        )
        started = now(device)
        model.fit(images.train.x, images.train.y)
        training = now(device) - started
        accuracy = float((model.predict(test.x) == test.y.numpy()).mean())
        seconds = now(device) - started
        if trial >= 0:
            found["accuracy"].append(accuracy)
            found["seconds"].append(seconds)
            found["training_seconds"].append(training)
            found["ridge"].append(model.ridge_)
            if isinstance(model, TraditionalClassifier):
                model.average_at_prediction(TASKS[dataset].rule(settings))
                averaged = float((model.predict(test.x) == test.y.numpy()).mean())
                found.setdefault("averaged", []).append(averaged)
        bench.tick((trial + 1) / settings.trials, way)
    return found
