"""Augmentations made of augmentations: one then another, a mixture, a power."""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury._base.text import shown
from augury.augmentations.base import Augmentation, Nodes, Params, number
from augury.augmentations.routing import route, take_params
from augury.augmentations.symmetries import identity

if TYPE_CHECKING:
    from augury.augmentations.tables import Table

MOST_REPEATS = 64
"""The highest power: more is a mistake, and would take for ever."""


class _Composite(Augmentation):
    parts: tuple[Augmentation, ...]

    def _combine(self, sizes: Callable[[list[int]], int | None]) -> None:
        """Find what the parts make together: linear if all are, finite if all are."""
        object.__setattr__(self, "parts", tuple(map(as_augmentation, self.parts)))
        object.__setattr__(self, "linear", all(part.linear for part in self.parts))
        known = [part.size for part in self.parts if part.size is not None]
        object.__setattr__(self, "size", sizes(known) if len(known) == len(self.parts) else None)
        object.__setattr__(self, "kinds", frozenset.intersection(*(p.kinds for p in self.parts)))

    def check(self, shape: tuple[int, ...]) -> None:
        for part in self.parts:
            part.check(shape)

    def _scaled(self, factor: float) -> Augmentation:
        return self._with([part.at_scale(factor) for part in self.parts])

    def at_rate(self, rate: int, level: float) -> Augmentation:
        return self._with([part.at_rate(rate, level) for part in self.parts])

    def bound(self, table: Table) -> Augmentation:
        return self._with([part.bound(table) for part in self.parts])

    def _with(self, parts: list[Augmentation]) -> Augmentation:
        return dataclasses.replace(self, parts=tuple(parts))  # type: ignore[type-var]  # composites are dataclasses

    def _draw_parts(self, n: int, rng: Rng) -> tuple[Params, ...]:
        return tuple(part.draw(n, rng.child(k)) for k, part in enumerate(self.parts))


@dataclass(frozen=True, repr=False)
class Then(_Composite):
    """The first augmentation, then the second, and so on: ``a >> b``."""

    parts: tuple[Augmentation, ...]

    def __post_init__(self) -> None:
        self._combine(math.prod)

    @classmethod
    def of(cls, *parts: Any) -> Then:
        """Join parts, flattening what is already a sequence; what is none is parsed."""
        given = [as_augmentation(part) for part in parts]
        return cls(
            tuple(p for part in given for p in (part.parts if type(part) is cls else (part,)))
        )

    def draw(self, n: int, rng: Rng) -> Params:
        return self._draw_parts(n, rng)

    def nodes(self, n: int) -> Nodes | None:
        if self.size is None or self.size > n:
            return None  # a grid over several continuous parameters is no better than draws
        return _product([_rule(part, n) for part in self.parts])

    def apply(self, x: Tensor, params: Params) -> Tensor:
        for part, p in zip(self.parts, params, strict=True):
            x = part.apply(x, p)
        return x

    def __repr__(self) -> str:
        return " >> ".join(bracket(part, Mixture) for part in self.parts)


@dataclass(frozen=True, repr=False)
class Power(_Composite):
    """The same augmentation several times, with independent draws: ``a ** k``."""

    base: Augmentation
    times: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", as_augmentation(self.base))
        times = self.times if isinstance(self.times, Real) else math.nan
        if not (math.isfinite(times) and times == int(times) and times >= 1):
            raise AuguryError(f"{self}: the power must be 1, 2, 3, …")
        if self.times * _repeats(self.base) > MOST_REPEATS:
            raise AuguryError(
                f"{self}: a power, times those inside it, may be at most {MOST_REPEATS}"
            )
        object.__setattr__(self, "times", int(self.times))
        object.__setattr__(self, "parts", (self.base,) * int(self.times))
        self._combine(math.prod)

    def draw(self, n: int, rng: Rng) -> Params:
        return self._draw_parts(n, rng)

    def nodes(self, n: int) -> Nodes | None:
        return Then(self.parts).nodes(n)

    def apply(self, x: Tensor, params: Params) -> Tensor:
        return Then(self.parts).apply(x, params)

    def _with(self, parts: list[Augmentation]) -> Augmentation:
        return Power(parts[0], self.times)

    def __repr__(self) -> str:
        return f"{bracket(self.base, Then, Mixture, Power)} ** {self.times}"


def _repeats(part: Augmentation) -> float:
    """Return how often a part repeats something: powers inside powers multiply."""
    if isinstance(part, Power):
        return part.times * _repeats(part.base)
    return max(map(_repeats, part.parts), default=1) if isinstance(part, _Composite) else 1


@dataclass(frozen=True, repr=False, eq=False)
class Weighted(Augmentation):
    """A part with its weight, ``0.3*a``: joined by ``|``, its weight; alone, its probability."""

    weight: float
    part: Augmentation

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", as_augmentation(self.part))
        weight = self.weight
        fits = isinstance(weight, Real) and not isinstance(weight, bool)
        if not (fits and 0 < weight <= sys.float_info.max):
            what = bracket(self.part, Then, Mixture)
            raise AuguryError(
                f"the weight of {what} must be a positive number, such as 0.5, got {shown(weight)}"
            )
        plain = int(weight) if isinstance(weight, Integral) else float(weight)
        object.__setattr__(self, "weight", plain)
        whole = self.alone() if plain <= 1 else self.part
        for name in ("kinds", "linear", "size"):
            object.__setattr__(self, name, getattr(whole, name))

    def alone(self) -> Augmentation:
        """Return the part with its weight as its probability: ``0.3*a | 0.7*identity``."""
        if self.weight > 1:
            raise AuguryError(f"{self}: a single weight is a probability in (0, 1]")
        rest = round(1 - self.weight, 12)  # 0.3 for 0.7, and not 0.30000000000000004
        if rest == 0:
            return self.part
        return Mixture((self.part, identity()), (self.weight, rest))

    @property
    def plain(self) -> Augmentation:
        return self.alone()

    def draw(self, n: int, rng: Rng) -> Params:
        return self.alone().draw(n, rng)

    def nodes(self, n: int) -> Nodes | None:
        return self.alone().nodes(n)

    def apply(self, x: Tensor, params: Params) -> Tensor:
        return self.alone().apply(x, params)

    def check(self, shape: tuple[int, ...]) -> None:
        self.alone().check(shape)

    def _scaled(self, factor: float) -> Augmentation:
        return self.alone().at_scale(factor)

    def at_rate(self, rate: int, level: float) -> Augmentation:
        return self.alone().at_rate(rate, level)

    def bound(self, table: Table) -> Augmentation:
        return self.alone().bound(table)

    def _same(self) -> Any:
        """Return what it is equal to: what it is alone, if it can be."""
        return self.alone() if self.weight <= 1 else (self.weight, self.part)

    def __eq__(self, other: object) -> bool:
        return self._same() == (other._same() if isinstance(other, Weighted) else other)

    def __hash__(self) -> int:
        return hash(self._same())

    def __repr__(self) -> str:
        return f"{number(self.weight)}*{bracket(self.part, Then, Mixture)}"


@dataclass(frozen=True, repr=False)
class Mixture(_Composite):
    """One of several augmentations, chosen at random: ``a | b``, ``0.7*a | 0.3*b``."""

    parts: tuple[Augmentation, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(math.isfinite(w) and w > 0 for w in self.weights):
            raise AuguryError(f"expected positive weights in a mixture, got {self.weights}")
        self._combine(sum)

    @classmethod
    def of(cls, *parts: Any) -> Mixture:
        """Join parts: without a weight it is 1, a mixture's keep theirs; what is none is parsed."""
        flat: list[tuple[float, Augmentation]] = []
        for part in parts:
            if isinstance(part, Weighted):
                flat.append((part.weight, part.part))
                continue
            whole = as_augmentation(part)
            if isinstance(whole, Mixture):
                flat += zip(whole.weights, whole.parts, strict=True)
            else:
                flat.append((1.0, whole))
        return cls(tuple(p for _, p in flat), tuple(w for w, _ in flat))

    @property
    def probabilities(self) -> Tensor:
        """The weights, normalised."""
        weights = torch.tensor(self.weights, dtype=torch.float64)
        return weights / weights.sum()

    def draw(self, n: int, rng: Rng) -> Params:
        u = rng.child(len(self.parts)).uniform(n).contiguous()
        bounds = self.probabilities.cumsum(0)[:-1].to(u)
        return (torch.bucketize(u, bounds), *self._draw_parts(n, rng))

    def nodes(self, n: int) -> Nodes | None:
        sizes = [part.size for part in self.parts]
        left, others = n - sum(size or 0 for size in sizes), sizes.count(None)
        share = left // others if others else 0  # finite parts take what they need, no more
        if left < 0 or (others and share < max(1, n // len(sizes))):
            return None
        rules = [part.nodes(size or share) for part, size in zip(self.parts, sizes, strict=True)]
        if any(rule is None for rule in rules):
            return None
        return _union([rule for rule in rules if rule is not None], self.probabilities)

    def apply(self, x: Tensor, params: Params) -> Tensor:
        return route(x, self.parts, [params])

    def __repr__(self) -> str:
        looser = (Mixture,) if set(self.weights) == {1} else (Then, Mixture)
        return " | ".join(
            f"{_factor(w, part)}{bracket(part, *looser)}"
            for w, part in zip(self.weights, self.parts, strict=True)
        )


def _factor(weight: float, part: Augmentation) -> str:
    """Write a weight before its part: ``5*``, ``0.3*``; for 1 only before a mixture, kept whole."""
    short = int(weight) if weight == round(weight) and weight < 1e6 else weight
    return "" if weight == 1 and not isinstance(part, Mixture) else f"{number(short)}*"


def as_augmentation(given: Any) -> Augmentation:
    """Return an augmentation itself, a weighted part as it is alone, and parse what is none."""
    if isinstance(given, Augmentation):
        return given.plain
    from augury.augmentations.spec import parse  # it imports this module

    return parse(given)


def bracket(part: Augmentation, *looser: type) -> str:
    """Write a part, in brackets if it binds less than what it stands in."""
    return f"({part})" if isinstance(part, looser) else repr(part)


def _rule(part: Augmentation, n: int) -> Nodes:
    """Return the exact rule of a finite augmentation of at most n maps."""
    rule = part.nodes(n)
    if rule is None:
        raise AuguryError(f"{part} says that it has {part.size} maps, but gave no rule of so many")
    return rule


def _product(rules: list[Nodes]) -> Nodes:
    """Join rules of independent parts: every combination, weights multiplied."""
    picks = list(itertools.product(*(range(len(rule.weights)) for rule in rules)))
    columns = list(zip(*picks, strict=True))
    params = tuple(
        take_params(r.params, torch.tensor(c)) for r, c in zip(rules, columns, strict=True)
    )
    weights = torch.stack([r.weights[list(c)] for r, c in zip(rules, columns, strict=True)]).prod(0)
    return Nodes(params, weights)


def _union(rules: list[Nodes], probabilities: Tensor) -> Nodes:
    """Join the rules of a mixture's parts: each part keeps its nodes, the others idle meanwhile."""
    sizes = [len(rule.weights) for rule in rules]
    total, start, columns = sum(sizes), 0, []
    for rule, size in zip(rules, sizes, strict=True):
        index = torch.zeros(total, dtype=torch.int64)
        index[start : start + size] = torch.arange(size)
        columns.append(take_params(rule.params, index))
        start += size
    choice = torch.repeat_interleave(torch.arange(len(rules)), torch.tensor(sizes)).unsqueeze(1)
    weights = torch.cat([p * r.weights for p, r in zip(probabilities, rules, strict=True)])
    return Nodes((choice, *columns), weights)
