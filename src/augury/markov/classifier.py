"""The classifier of the theorem: the Bayes rule on the chain's stationary law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from augury._base.errors import AuguryError, one_line
from augury._base.given import as_list, as_whole
from augury._base.text import count
from augury.augmentations import Chain
from augury.markov.chain import FiniteChain
from augury.markov.checks import stochastic
from augury.markov.orbits import enumerate_orbits


class ChainClassifier(ClassifierMixin, BaseEstimator):
    """Classify by the label that is most likely in the stationary law of the augmented data.

    That is the limit of k-nearest neighbours on ever more steps of the process, and it is a
    kernel classifier (Theorem 1): the mass of label y at state x is Σ_{i: y_i=y} α_i K(x_i, x).
    An input that is not a state takes the law of the nearest state, as its neighbours would.

    Parameters
    ----------
    chain
        Finite augmentations with their rates: a `Chain` or its text.
    input_shape
        The shape of an example, where X's rows are flattened images: ``(1, 8, 8)``.
    relabel
        Where augmentations change labels: for each, None (labels are kept) or a stochastic matrix
        ``(C, C)`` of what a label becomes. If all are kept, the chain on labelled states is C
        copies of one block, and one block is all that is built.
    limit
        The most states to allow.
    tol
        The error allowed in the stationary law, in total variation.

    Attributes
    ----------
    classes_
        The labels.
    states_
        ``(N, d)``: the examples and all that the augmentations make of them.
    law_
        ``(N, C)``: π(x, y) for each state and label.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ChainClassifier("chain(pixel_shifts:1)", input_shape=(1, 8, 8))
    >>> float(model.fit(X[:200], y[:200]).score(X[200:400], y[200:400]))
    0.91
    """

    def __init__(
        self,
        chain: Chain | str = "chain(identity:1)",
        *,
        input_shape: tuple[int, ...] | None = None,
        relabel: Sequence[Any] | None = None,
        limit: int = 1_000_000,
        tol: float = 1e-10,
    ) -> None:
        self.chain = chain
        self.input_shape = input_shape
        self.relabel = relabel
        self.limit = limit
        self.tol = tol

    def fit(self, X: Any, y: Any) -> ChainClassifier:
        """Enumerate the orbits of the examples and solve for their stationary law."""
        with one_line():
            X, y = validate_data(self, X, y)
            check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        shape = (X.shape[1],)
        if self.input_shape is not None:
            sides = as_list("input_shape", self.input_shape)
            shape = tuple(as_whole("input_shape", side, 1) for side in sides)
        if np.prod(shape) != X.shape[1]:
            raise AuguryError(
                f"input_shape={tuple(shape)} has {count(int(np.prod(shape)), 'value')}, but X has "
                f"{count(X.shape[1], 'column')}; give the shape of one example"
            )
        orbits = enumerate_orbits(X.reshape(-1, *shape), self.chain, limit=self.limit)
        law = self._label_law(orbits.chain, orbits.examples, labels)
        reached = law.sum(1) > 0  # a rate of 0 leaves states that nothing leads to
        self.states_ = orbits.states.reshape(len(orbits.states), -1)[reached]
        self.law_ = law[reached]
        return self

    def _label_law(
        self, chain: FiniteChain, examples: np.ndarray, labels: np.ndarray
    ) -> np.ndarray:
        classes = len(self.classes_)
        restart = np.zeros((chain.states, classes))
        np.add.at(restart, (examples, labels), 1 / len(labels))
        relabel = [] if self.relabel is None else as_list("relabel", self.relabel)
        if all(matrix is None for matrix in relabel):
            return chain.solve(restart, tol=self.tol).x
        if len(relabel) != len(chain.matrices):
            raise AuguryError(
                f"relabel needs one entry per augmentation ({len(chain.matrices)}), got "
                f"{len(relabel)}"
            )
        kept = sp.eye_array(classes)
        changes = [kept if m is None else stochastic([m])[0] for m in relabel]
        for change in changes:
            if change.shape != kept.shape:
                raise AuguryError(
                    f"relabel needs matrices of shape {kept.shape}, one row per label; got "
                    f"{change.shape}"
                )
        both = [sp.kron(a, m, "csr") for a, m in zip(chain.matrices, changes, strict=True)]
        labelled = FiniteChain(both, chain.rates, restart.ravel())
        return labelled.stationary(tol=self.tol).reshape(restart.shape)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return π(y | x), ``(n, C)``."""
        check_is_fitted(self)
        with one_line():
            X = validate_data(self, X, reset=False)
        law = self.law_[pairwise_distances_argmin(X, self.states_)]
        return law / law.sum(1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely label of each row."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(1)]
