"""Statistics that add: sums over examples, from which a result and its error bars follow."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_list, as_whole, check_index, check_kind, check_tensors
from augury._base.rng import mix
from augury.features.orbit import Orbit


@dataclass(frozen=True)
class Estimate:
    """A number measured over examples, with its values when each group of them is left out.

    Attributes
    ----------
    value
        Over all examples.
    replicates
        ``(G,)``: without group g. Two estimates over the same examples have the same groups, so
        their replicates are paired.
    per_class
        ``(C,)``, or empty.
    class_replicates
        ``(G, C)``: the same without group g, or empty.
    chance
        What it would be if the labels had nothing to do with the examples.
    """

    value: float
    replicates: Tensor
    per_class: Tensor
    chance: float = -math.inf
    class_replicates: Tensor = field(default_factory=lambda: torch.empty(0, 0))


class Statistic(ABC):
    """Sums over examples: streaming, merging and resuming are all addition.

    A statistic's state is `sums`, a tuple of tensors that add; all its other attributes are
    settings, which must agree where two are joined.
    """

    sums: tuple[Tensor, ...] | None = None

    @abstractmethod
    def update(self, orbit: Orbit, y: Tensor, index: Tensor) -> None:
        """Add a batch: its orbit, its targets ``(b, C)`` and the examples' indices ``(b,)``."""

    @abstractmethod
    def result(self) -> Estimate:
        """Turn the sums into the number they stand for."""

    def __add__(self, other: Statistic) -> Self:
        """Join the sums of two disjoint sets of examples."""
        if type(self) is not type(other) or self._settings() != other._settings():
            raise AuguryError("only statistics of one kind, with the same settings, can be added")
        joined = copy.copy(self)
        if self.sums is not None and other.sums is not None:
            if [a.shape for a in self.sums] != [b.shape for b in other.sums]:
                raise AuguryError(
                    "only statistics of as many features and targets as each other can be added"
                )
            joined.sums = tuple(a + b for a, b in zip(self.sums, other.sums, strict=True))
        else:
            joined.sums = other.sums if self.sums is None else self.sums
        return joined

    def of(self, parts: Iterable[tuple[Tensor, ...]]) -> Self:
        """Return the statistic whose sums are the sum of these, added in their order."""
        found = copy.copy(self)
        found.sums = None
        for part in as_list("parts", parts):
            check_tensors(**{f"parts[{k}]": sums for k, sums in enumerate(as_list("parts", part))})
            if found.sums is None:
                found.sums = tuple(sums.clone() for sums in part)
            else:
                for total, sums in zip(found.sums, part, strict=True):
                    total += sums
        return found

    def without_data(self) -> Self:
        """Return what is enough to `update`, small enough to be sent to many workers."""
        return self

    def _settings(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "sums"}


def check_update(orbit: Orbit, y: Tensor, index: Tensor) -> None:
    """Raise one clear line unless a batch has an orbit of vectors, targets and indices."""
    check_kind("orbit", orbit, Orbit, "an Orbit")
    check_tensors(y=y)
    check_index(index)
    views = orbit.features
    if views.dim() != 3 or y.dim() != 2 or len(y) != views.shape[1] or len(index) != len(y):
        raise AuguryError(
            "expected features (views, examples, features), targets (examples, classes) and "
            f"an index for each example, got shapes {tuple(views.shape)}, {tuple(y.shape)} and "
            f"{tuple(index.shape)}"
        )


def group_of(index: Tensor, groups: int) -> Tensor:
    """Assign each example to a group, by its index alone."""
    check_index(index)
    groups = as_whole("groups", groups, 1)
    return (mix(index.to(torch.int64)) & 0x7FFF_FFFF).remainder(groups)
