"""A kernel classifier trained with augmentation, for about the cost of training without it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d
from torch import Tensor

from augury._base.devices import resolve_device
from augury._base.errors import AuguryError, one_line
from augury._base.text import count
from augury.cluster import Cluster
from augury.data.dataset import Dataset
from augury.data.stream import InMemory, Shards
from augury.kernel.base import KernelModel, Progress
from augury.kernel.inputs import read_inputs, read_target
from augury.kernel.rules import Rule, one_of
from augury.kernel.streamed import ROWS, check_once, streamed
from augury.objectives import logistic, multinomial


@dataclass(eq=False, repr=False, kw_only=True)
class AugmentedKernelClassifier(ClassifierMixin, KernelModel):
    """Classify by a linear model on Fourier features averaged over an augmentation.

    Parameters
    ----------
    augmentation
        An augmentation that preserves the class of an example: a spec such as ``"rotation(15)"``,
        or an `Augmentation`. Linear ones (warps, crops, flips, blur and combinations of them) cost
        one matrix product per view and transform no examples.
    input_shape
        The shape of one example, if the rows of X are flat: ``(1, 28, 28)``.
    n_components
        The number of Fourier features. Each frequency has a cosine and a sine, so an odd number is
        rounded up.
    kernel, nu, gamma, sampling, mean, std
        As for `FourierFeatures`.
    n_views
        The number of views to average: nodes of the augmentation's quadrature rule, or random maps
        if it has none. Finite augmentations may need fewer.
    objective
        ``"first-order"`` trains on averaged features (the paper's augmented features).
        ``"tangent"`` also penalises, for the quadratic loss, the variance along the leading
        direction of some orbits: most of the second-order term at little cost.
        ``"second-order"`` trains on averaged features with the whole variance term; ``"exact"``
        on all views, in closed form for the quadratic loss.
    loss
        ``"quadratic"`` (ridge regression on one-hot classes: fast) or ``"logistic"``
        (multinomial for more than two classes).
    ridge
        λ of the penalty λ‖w‖², or ``"gcv"`` to choose it by generalised cross-validation.
    prediction
        Whether new examples are predicted from ``"averaged"`` or from ``"plain"`` features.
    precision
        ``"float32"``; ``"tf32"`` for a GPU's tensor cores; ``"bfloat16"`` for products of inputs
        and frequencies (on a GPU, or a CPU that supports it: twice as fast); ``"float64"``.
    memory
        Memory limit in GiB; by default, half of the free memory. Features that do not fit are
        recomputed.
    device
        ``"auto"``, ``"cpu"`` or ``"cuda"``.
    random_state
        The seed of frequencies and drawn maps: a whole number, a `numpy.random.RandomState`, or
        None for another seed at each fit.

    Attributes
    ----------
    classes_
        The labels.
    gamma_, ridge_
        The kernel's γ and the penalty λ that were chosen.
    seed_
        The seed derived from `random_state`.
    risk_
        The estimated squared error on new data, by generalised cross-validation.
    note_
        Why examples had to be transformed; empty if they were not.

    Notes
    -----
    X is 2-D, or has the shape of the examples; bytes are interpreted as pixels in [0, 1]. Tensors
    can be on any device.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = AugmentedKernelClassifier("rotation(10)", input_shape=(1, 8, 8), n_components=512)
    >>> bool(model.fit(X[:900] / 16, y[:900]).score(X[900:] / 16, y[900:]) > 0.93)
    True
    """

    loss: str = "quadratic"

    rules: ClassVar[dict[str, Rule]] = KernelModel.rules | {
        "loss": one_of(["quadratic", "logistic"]),
    }

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        progress: Progress = lambda done, total: None,
        cluster: Cluster = None,
        journal: str | Path | None = None,
    ) -> AugmentedKernelClassifier:
        """Choose γ and λ, and solve for the weights.

        Parameters
        ----------
        X, y
            Examples and labels; or, as `X` alone, the result of `augury.open_shards`, which is
            streamed: only the Gram matrix and one block of examples are held in memory.
        progress
            Called with (done, total) examples whose features are ready.
        cluster
            Where to sum over the examples, for the quadratic loss: the values of `augury.rank`;
            by default, in this process. Arrays are cut into shards of 8,192 examples.
        journal
            A directory in which the sums of shards are kept, so that a stopped fit can be
            resumed; ignored for arrays without a cluster.
        """
        self.check_parameters()
        if self.loss != "quadratic" and self.objective == "tangent":
            raise AuguryError("the tangent objective is for the quadratic loss; use second-order")
        if cluster is not None or isinstance(X, Shards):
            check_once(self.loss)
        if isinstance(X, Shards):
            return self._fit_shards(X, y, progress, cluster, journal)
        x = read_inputs(self, X, self.input_shape, reset=True)
        labels = read_target(y)
        with one_line():
            labels = column_or_1d(labels, warn=True)
            assert_all_finite(labels, input_name="y")
            check_classification_targets(labels)
        if len(labels) != len(x):
            raise AuguryError(
                f"X has {count(len(x), 'example')} and y has {len(labels)}; pass one label per "
                "example"
            )
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise AuguryError(f"y has only one class ({only!r}); a classifier needs at least two")
        index = torch.from_numpy(numbers).to(resolve_device(self.device))
        one_hot = torch.nn.functional.one_hot(index, len(self.classes_)).double()
        self._fit_features(x, one_hot)
        like = self._psi.weights
        assert like is not None
        share = one_hot.mean(0)
        centred = (one_hot - share).to(like)
        if cluster is not None:
            data = Dataset(x, torch.from_numpy(numbers), tuple(map(str, self.classes_)))
            table = torch.eye(len(share), dtype=torch.float64) - share.cpu()
            with streamed(self, InMemory(data, ROWS), cluster, journal, table=table) as stream:
                self._solve_quadratic(stream, None, progress)
            self._bias = share.to(like)
        elif self.loss == "quadratic":
            self._solve_quadratic(x, centred, progress)
            self._bias = share.to(like)
        elif len(self.classes_) == 2:
            self._solve_smooth(x, centred, (2 * index - 1).to(like), logistic, progress)
        else:
            self._solve_smooth(x, centred, index, multinomial, progress)
        return self

    def _fit_shards(
        self, X: Shards, y: Any, progress: Progress, cluster: Cluster, journal: str | Path | None
    ) -> AugmentedKernelClassifier:
        if y is not None or X.about.classes is None:
            raise AuguryError("shards for a classifier must have classes as labels; do not pass y")
        sample = read_inputs(self, X.about.x, self.input_shape, reset=True)
        self.classes_, place = np.unique(np.array(X.about.classes), return_inverse=True)
        rows = torch.eye(len(place), dtype=torch.float64)[torch.from_numpy(place)]
        share = X.y.long().bincount(minlength=len(place)).double() @ rows / len(X)
        self._fit_features(sample, rows[X.about.y.long()])
        like = self._psi.weights
        assert like is not None
        with streamed(self, X, cluster, journal, table=rows - share) as stream:
            self._solve_quadratic(stream, None, progress)
        self._bias = share.to(like)
        return self

    def _scores(self, X: Any) -> Tensor:
        check_is_fitted(self)
        return self._outputs(read_inputs(self, X, self.input_shape, reset=False))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each class ``(n, C)``; for two classes, of the second ``(n,)``."""
        scores = self._scores(X)
        if len(self.classes_) > 2:
            return scores.numpy()
        return (scores if scores.shape[1] == 1 else scores[:, 1:] - scores[:, :1])[:, 0].numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row."""
        scores = torch.from_numpy(self.decision_function(X))
        best = scores.argmax(1) if scores.dim() == 2 else (scores > 0).long()
        return self.classes_[best.numpy()]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, ``(n, C)``.

        For the logistic loss, these are the model's probabilities. For the quadratic loss, the
        outputs, which estimate probabilities, are clipped at 0 and normalised to sum to 1.
        """
        scores = self._scores(X)
        if self.loss == "logistic":
            if scores.shape[1] == 1:
                scores = torch.cat([torch.zeros_like(scores), scores], 1)
            return scores.softmax(1).numpy()
        return torch.nn.functional.normalize(scores.clamp_min(1e-9), p=1, dim=1).numpy()
