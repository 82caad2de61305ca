"""A linear model, as the least that a trial's network must beat."""

from __future__ import annotations

from typing import Any

import numpy as np

from augury.data.dataset import Dataset

_MOST = 2000


def linear_score(data: Dataset, seed: int, *, balanced: bool = False) -> float:
    """Return the held-out accuracy, or share of variance explained, of a linear model.

    With `balanced`, classes count alike.
    """
    from sklearn.linear_model import LogisticRegression, RidgeCV  # a second to import
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, cross_val_predict

    order = np.random.default_rng(seed & 0xFFFF_FFFF).permutation(len(data))[:_MOST]
    x, y = data.x[order].flatten(1).numpy(), data.y[order].numpy()
    groups = None if data.groups is None else data.groups[order].numpy()
    kind = GroupKFold if data.classes is None else StratifiedGroupKFold
    parts: Any = 3 if groups is None else kind(min(3, len(np.unique(groups))))
    if data.classes is None:
        ridge = RidgeCV(np.logspace(-3, 4, 15))
        found = cross_val_predict(ridge, x, y, cv=parts, groups=groups)
        return float(1 - np.mean((found - y) ** 2) / max(float(np.var(y)), 1e-12))
    if np.bincount(y)[np.unique(y)].min() < 3:
        return 0.0
    if groups is not None:
        parts = list(parts.split(x, y, groups))
        if any(len(np.unique(y[train])) < 2 for train, _ in parts):
            return 0.0  # no split leaves two classes to learn
    model = LogisticRegression(max_iter=500, class_weight="balanced" if balanced else None)
    found = cross_val_predict(model, x, y, cv=parts, groups=groups)
    if balanced:
        return float(np.mean([np.mean(found[y == c] == c) for c in np.unique(y)]))
    return float(np.mean(found == y))
