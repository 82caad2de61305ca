"""Augmentations of rows of a table, which know its columns: numbers, levels and words.

A family that takes values from the table is bound to it first: `Augmentation.bound`. Ranking does
so with the rows that a model trains on, never with those it is judged by.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.rng import Rng, normal_from, spread_bits, uniform_from
from augury.augmentations.base import Family, require

_NEIGHBOURS = 5
"""Neighbours to mix with, as in SMOTE (Chawla et al., 2002)."""
_PAIRS = 1 << 24  # distances in memory at a time


@dataclass(frozen=True, eq=False)
class Table:
    """The rows that augmentations of a table draw from, and what its features are.

    Attributes
    ----------
    x
        ``(N, d)``: the rows, in standard units.
    y
        ``(N,)``: class numbers; None for a real-valued target, where neighbours may be any rows.
    column
        ``(d,)``: the number of the column that each feature belongs to: the one-hot features of
        a column of words share theirs.
    words
        ``(d,)``: whether a feature stands for a word.
    levels
        The sorted values of each ordinal feature, by its number.
    absent
        ``(d,)``: what a feature is where its column has no value.
    missing
        ``(d,)``: whether `absent` stands for missing values in the rows.
    """

    x: Tensor
    y: Tensor | None
    column: Tensor
    words: Tensor
    levels: dict[int, Tensor]
    absent: Tensor
    missing: Tensor

    @property
    def columns(self) -> int:
        """The number of columns."""
        return int(self.column.max()) + 1

    def is_missing(self, x: Tensor) -> Tensor:
        """Return which values stand for missing ones."""
        return self.missing.to(x.device) & (x == self.absent.to(x))

    def snap(self, x: Tensor) -> Tensor:
        """Return rows whose ordinal features have been moved to their nearest level."""
        if not self.levels:
            return x
        x = x.clone()
        for feature, levels in self.levels.items():
            at = (x[..., feature, None] - levels.to(x)).abs().argmin(-1)
            x[..., feature] = levels.to(x)[at]
        return x

    @cached_property
    def neighbours(self) -> Tensor:
        """The nearest rows of the same class of each row, ``(N, up to 5)``; itself if alone."""
        n = len(self.x)
        found = []
        k = max(1, min(_NEIGHBOURS, n - 1))
        rows = torch.arange(n, device=self.x.device)
        for part in rows.split(max(1, _PAIRS // n)):
            distance = _distances(self.x[part], self.x)
            distance[torch.arange(len(part)), part] = torch.inf
            if self.y is not None:
                distance[self.y[part, None] != self.y] = torch.inf
            nearest = distance.topk(k, largest=False)
            found.append(torch.where(nearest.values.isinf(), part[:, None], nearest.indices))
        return torch.cat(found)

    def nearest_row(self, x: Tensor) -> Tensor:
        """Return the number of the row nearest to each of ``(m, d)``, its own if it is one."""
        reference = self.x.to(x)
        parts = x.split(max(1, _PAIRS // len(reference)))
        return torch.cat([_distances(part, reference).argmin(1) for part in parts])


def _distances(a: Tensor, b: Tensor) -> Tensor:
    """Return distances that do not depend on how many rows are compared at a time."""
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


class OfTable(Family):
    """A family that knows the table it is for, once it is bound to it."""

    kinds = frozenset({"vector"})
    table: ClassVar[Table | None] = None  # an attribute of the instance once it is bound

    def bound(self, table: Table) -> Self:
        new = copy.copy(self)
        object.__setattr__(new, "table", table)
        return new

    def _needed(self) -> Table:
        if self.table is None:
            raise AuguryError(
                f"{self} takes values from a table, which only augury rank gives it; choose "
                f"another family (in Python, bind it first: {self}.bound(table))"
            )
        return self.table

    def _lucky(self, keys: Tensor, features: int, rate: float, x: Tensor) -> Tensor:
        """Return which features are hit: each column, with its one-hot features, at a rate."""
        column = torch.arange(features) if self.table is None else self.table.column
        luck = uniform_from(spread_bits(keys, int(column.max()) + 1))
        return luck.index_select(-1, column.to(luck.device)).to(x.device) < rate


@dataclass(frozen=True, repr=False)
class column_noise(OfTable):
    """Noise of `sd` standard deviations of each column; integer levels and words are kept."""

    ladder = ((0.02,), (0.05,), (0.1,), (0.2,), (0.5,))
    sd: float = 0.1

    def __post_init__(self) -> None:
        require("column_noise", self.sd > 0, "a standard deviation over 0", self.sd)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        noise = self.sd * normal_from(params, x.shape[-1]).to(x)
        if self.table is None:
            return x + noise
        table = self.table
        moved = table.snap(x + noise)
        return torch.where(table.words.to(x.device) | table.is_missing(x), x, moved)


@dataclass(frozen=True, repr=False)
class swap_noise(OfTable):
    """Each column, with probability `rate`, takes the value of another row of the table."""

    ladder = ((0.02,), (0.05,), (0.1,), (0.2,), (0.4,))
    rate: float = 0.1

    def __post_init__(self) -> None:
        require("swap_noise", 0 < self.rate < 1, "a rate in (0, 1)", self.rate)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return torch.stack([rng.key(n), rng.child(0).key(n)], -1)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        table = self._needed()
        hit = self._lucky(params[..., 0], x.shape[-1], self.rate, x)
        luck = uniform_from(spread_bits(params[..., 1], table.columns)).to(x.device)
        row = (luck * len(table.x)).to(torch.int64).clamp_max(len(table.x) - 1)
        row = row.index_select(-1, table.column.to(x.device))  # the same row for all of a column
        given = table.x.to(x)[row, torch.arange(x.shape[-1], device=x.device)]
        gone = table.is_missing(x) | table.is_missing(given)  # missing values stay where they are
        return torch.where(hit & ~gone, given, x)


@dataclass(frozen=True, repr=False)
class column_dropout(OfTable):
    """Each column set to its mean, or to no word, with probability `rate`."""

    ladder = ((0.02,), (0.05,), (0.1,), (0.2,), (0.4,))
    rate: float = 0.1

    def __post_init__(self) -> None:
        require("column_dropout", 0 < self.rate < 1, "a rate in (0, 1)", self.rate)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        hit = self._lucky(params, x.shape[-1], self.rate, x)
        absent = x.new_zeros(()) if self.table is None else self.table.absent.to(x)
        return torch.where(hit, absent, x)


@dataclass(frozen=True, repr=False)
class neighbour_mix(OfTable):
    """A point up to `share` of the way to a near row of the same class (SMOTE).

    Levels are rounded to the nearest; a column of words is taken from one row or the other.
    """

    ladder = ((0.1,), (0.25,), (0.5,), (1.0,))
    share: float = 0.5

    def __post_init__(self) -> None:
        require("neighbour_mix", 0 < self.share <= 1, "a share in (0, 1]", self.share)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return torch.stack([rng.key(n), rng.child(0).key(n)], -1)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        table = self._needed()
        n = params.shape[0]
        x = x.expand(n, *x.shape[1:])
        row = table.nearest_row(x[:1].flatten(0, 1) if x.stride(0) == 0 else x.flatten(0, 1))
        row = row.view(-1, x.shape[1]).expand(n, -1)
        luck = uniform_from(spread_bits(params[..., 0], 2)).to(x)
        near = table.neighbours.to(x.device)
        which = (luck[..., 0] * near.shape[1]).to(torch.int64).clamp_max(near.shape[1] - 1)
        other = table.x.to(x)[near[row, which]]
        far = (self.share * luck[..., 1]).unsqueeze(-1)
        mixed = table.snap(x + far * (other - x))
        coin = uniform_from(spread_bits(params[..., 1], table.columns)).to(x)
        taken = coin.index_select(-1, table.column.to(x.device)) < far
        mixed = torch.where(table.words.to(x.device), torch.where(taken, other, x), mixed)
        gone = table.is_missing(x) | table.is_missing(other)
        return torch.where(gone, x, mixed)
