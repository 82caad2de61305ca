"""Splits that keep groups whole: one speaker or source is never on both sides."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury.data.dataset import Dataset

_PARTS = 3
"""A third of the groups is held out: what trials may train on is two thirds of the data."""
_FEW = 4
"""So many groups or fewer are held out one by one: each matters."""


def count_parts(data: Dataset) -> int:
    """Return into how many parts groups are dealt, each of which is held out in turn."""
    if data.groups is None:
        return 1
    found = len(data.groups.unique())
    return found if found <= _FEW else _PARTS


def grouped_split(
    data: Dataset, order: Tensor, folds: int, seed: int, number: int
) -> tuple[Tensor, Tensor]:
    """Return the examples that a fold trains on and those it is judged by, from other groups.

    Folds in a row hold out other groups until each was held out once; then groups are dealt
    anew. Classes are spread over the parts as evenly as the groups allow. All folds have as many
    examples, so that they can be trained as one.

    Parameters
    ----------
    data
        Examples with groups.
    order
        The order in which examples are taken.
    folds
        How many folds there will be.
    seed, number
        The same seed deals groups alike; `number` is the fold's.
    """
    held = [_held_out(data, seed, k)[order] for k in range(max(folds, number + 1))]
    tested = min(int(mask.sum()) for mask in held)
    trained = min(int((~mask).sum()) for mask in held)
    if (least := min(tested, trained)) < 2:
        raise AuguryError(
            f"the {len(data):,} examples cannot be split by group: one part would have "
            f"{'only 1 example' if least else 'none'}; use more examples or smaller groups"
        )
    mask = held[number]
    return order[~mask][:trained], order[mask][:tested]


def _held_out(data: Dataset, seed: int, number: int) -> Tensor:
    """Return which examples a fold holds out."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold  # a second to import

    assert data.groups is not None
    groups, y = data.groups.numpy(), data.y.numpy()
    largest = len(y) if data.classes is None else int(np.bincount(y).max())
    parts = min(count_parts(data), largest)
    if parts < 2:
        raise AuguryError("all examples belong to one group; at least two groups are needed")
    deal = StratifiedGroupKFold if data.classes is not None else GroupKFold
    random = (seed * 1000 + number // parts) % 2**32
    splitter = deal(n_splits=parts, shuffle=True, random_state=random)
    with warnings.catch_warnings():  # a class of two examples cannot be in all three parts
        warnings.simplefilter("ignore", UserWarning)
        tests = [test for _, test in splitter.split(np.zeros(len(y)), y, groups)]
    out = torch.zeros(len(data), dtype=torch.bool)
    out[torch.from_numpy(tests[number % parts])] = True
    return out
