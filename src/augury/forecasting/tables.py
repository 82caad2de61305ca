"""A table as its augmentations need to know it: its rows, and what its columns hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from augury.augmentations.base import Augmentation
from augury.augmentations.tables import Table
from augury.data.dataset import Dataset
from augury.forecasting.trial import HeldOut, Trial, make_fold, run_folds

_MOST_LEVELS = 20
"""A column of whole numbers with at most so many values is ordinal."""


def table_of(data: Dataset, rows: Tensor | None = None) -> Table:
    """Return the table that augmentations draw from: these rows of the data, all by default."""
    rows = torch.arange(len(data)) if rows is None else rows
    fitted = data.preparation
    names = () if fitted is None else fitted.columns
    names = names or tuple((str(k), None) for k in range(data.shape[0]))
    words = torch.tensor([word is not None for _, word in names])
    number: dict[str, int] = {}
    column = torch.tensor([number.setdefault(name, len(number)) for name, _ in names])
    mean, deviation = _moments(data)
    absent = torch.where(words, -mean / deviation, 0.0).to(data.x.dtype)
    missing = torch.zeros_like(words)
    if data.missing is not None:
        missing = data.missing.any(0)
        first = data.missing.to(torch.uint8).argmax(0)
        filled = data.x[first, torch.arange(data.shape[0])]
        absent = torch.where(missing, filled, absent)
    levels = {
        k: found
        for k in range(data.shape[0])
        if not words[k] and (found := _levels(data, k, mean, deviation)) is not None
    }
    y = None if data.classes is None else data.y[rows]
    return Table(data.x[rows], y, column, words, levels, absent, missing)


def _moments(data: Dataset) -> tuple[Tensor, Tensor]:
    fitted = data.preparation
    if fitted is None:
        return torch.zeros(data.shape[0]), torch.ones(data.shape[0])
    mean, deviation = torch.tensor(fitted.mean), torch.tensor(fitted.deviation)
    return mean, torch.where(deviation == 0, 1.0, deviation)


def _levels(data: Dataset, k: int, mean: Tensor, deviation: Tensor) -> Tensor | None:
    """Return the values of an ordinal feature; None for one that is not."""
    values = data.x[:, k]
    if data.missing is not None:
        values = values[~data.missing[:, k]]
    levels = values.unique()
    if len(levels) > _MOST_LEVELS:
        return None
    raw = levels.double() * float(deviation[k]) + float(mean[k])
    whole = bool(((raw - raw.round()).abs() <= 1e-4 * raw.abs().clamp_min(1.0)).all())
    return levels if whole else None


def run_table_folds(
    data: Dataset,
    candidates: Sequence[Augmentation],
    trial: Trial,
    numbers: Sequence[int],
    *,
    seed: int,
    **options: Any,
) -> list[HeldOut]:
    """Run folds of a trial, each with candidates that know the rows it trains on and no others."""
    found = []
    for number in numbers:
        table = table_of(data, make_fold(data, trial, seed, number).train)
        bound = [candidate.bound(table) for candidate in candidates]
        found += run_folds(data, bound, trial, [number], seed=seed, **options)
    return found
