"""From an augmentation to steps of another library: one walk for all libraries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from augury._base.errors import AuguryError
from augury._base.text import listed
from augury.adapters.code import Call
from augury.augmentations import (
    Augmentation,
    Chain,
    Mixture,
    Power,
    Sampled,
    Then,
    identity,
    jitter,
)

Shape = tuple[int, ...] | None
"""The shape of one example, channels first, where it is known."""


@dataclass(frozen=True)
class Translation:
    """How a library writes a family.

    Parameters
    ----------
    steps
        Takes the family and the shape of an example, and returns the library's steps, or None
        where the library cannot express this setting.
    differs
        The mean absolute difference between the library's images and augury's for the same
        parameters: measured at 64 pixels on photographs, as a share of the pixel range.
    because
        Why they differ; a function of the family and the shape of an example where these decide,
        and empty where they do not.
    """

    steps: Callable[[Any, Shape], list[Call] | None]
    differs: float = 0.0
    because: str | Callable[[Any, Shape], str] = ""


class Dialect(ABC):
    """How a library writes what augmentations are made of.

    A subclass has a table of families, and says how steps are applied with a probability, how one
    of several is chosen and how a chain is walked. A family that is not in the table is written
    as a call to augury.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = ("image",)
    table: ClassVar[Mapping[type[Augmentation], Translation]]

    def __init__(self, shape: Shape = None) -> None:
        self.shape = shape

    def steps(self, augmentation: Augmentation) -> list[Call]:
        """Translate an augmentation into steps to be applied one after the other."""
        if isinstance(augmentation, identity):
            return []
        if isinstance(augmentation, Then):
            return [step for part in augmentation.parts for step in self.steps(part)]
        if isinstance(augmentation, Power):
            return self.steps(augmentation.base) * int(augmentation.times)
        if isinstance(augmentation, Mixture):
            return self._mixture(augmentation)
        if isinstance(augmentation, Chain):
            moves = [(p, r) for p, r in zip(augmentation.parts, augmentation.rates, strict=True)]
            moves = [(part, rate) for part, rate in moves if rate > 0]
            branches = [self.together(self.steps(part)) for part, _ in moves]
            return [self.chain(branches, [float(rate) for _, rate in moves])]
        return self._family(augmentation)

    def _mixture(self, mixture: Mixture) -> list[Call]:
        """Translate a mixture; parts that change nothing become the chance that none is applied."""
        shares = mixture.probabilities.tolist()
        branches = [
            (share, steps)
            for share, part in zip(shares, mixture.parts, strict=True)
            if (steps := self.steps(part))
        ]
        total = round(sum(share for share, _ in branches), 9)  # 28 shares of 1/28 are not quite 1
        if not branches:
            return []
        if len(branches) == 1:
            return self.sometimes(branches[0][1], total)
        joined = [self.together(steps) for _, steps in branches]
        return [self.choice(joined, [share / total for share, _ in branches], total)]

    def _family(self, family: Augmentation) -> list[Call]:
        if not family.kinds & set(self.kinds):
            raise AuguryError(
                f"{self.name} is for {' and '.join(KIND_WORDS[kind] for kind in self.kinds)}, but "
                f"{family} is for "
                f"{' or '.join(KIND_WORDS[kind] for kind in sorted(family.kinds))}; "
                "export it to another format"
            )
        entry, steps = self.translate(family)
        if entry is None or steps is None:
            return self.fallback(family)
        because = entry.because(family, self.shape) if callable(entry.because) else entry.because
        if not because:
            return steps
        size = f" by {entry.differs:.4f} on average" if entry.differs else ""
        first = replace(steps[0], note=f"{family}: differs from augury{size}: {because}")
        return [first, *steps[1:]]

    def translate(self, family: Augmentation) -> tuple[Translation | None, list[Call] | None]:
        """Look a family up: its entry and its steps, None where the library cannot express it."""
        entry = self.table.get(type(family))
        return entry, None if entry is None else entry.steps(family, self.shape)

    def fallback(self, family: Augmentation) -> list[Call]:
        """Write a family that the table lacks as a call to augury."""
        if isinstance(family, Sampled):
            raise AuguryError(
                f"{family} is a function of your own and cannot be exported; put it into the "
                "exported code by hand"
            )
        return [self.augury(repr(family))]

    def sometimes(self, steps: list[Call], p: float) -> list[Call]:
        """Apply steps with probability p: by their own p where there is one step that has one."""
        if p == 1:
            return steps
        if len(steps) == 1 and "p" in steps[0].options:
            return [steps[0].with_options(p=steps[0].options["p"] * p)]
        return [self.with_probability(steps, p)]

    @abstractmethod
    def augury(self, spec: str) -> Call:
        """Return a step that applies an augmentation of augury."""

    @abstractmethod
    def together(self, steps: list[Call]) -> Call:
        """Join steps into one."""

    @abstractmethod
    def with_probability(self, steps: list[Call], p: float) -> Call:
        """Apply steps, all or none, with probability p."""

    @abstractmethod
    def choice(self, branches: list[Call], weights: Sequence[float], p: float) -> Call:
        """Apply one branch, chosen by weights that sum to one, with probability p."""

    @abstractmethod
    def chain(self, branches: list[Call], rates: Sequence[float]) -> Call:
        """Apply branches one after another until a restart."""

    @abstractmethod
    def write(self, augmentation: Augmentation) -> str:
        """Write the whole pipeline."""


def leaves(augmentation: Augmentation) -> Iterator[Augmentation]:
    """Yield the families and functions that an augmentation is made of."""
    parts = getattr(augmentation, "parts", None)
    if parts is None:
        yield augmentation
    for part in parts or ():
        yield from leaves(part)


def unclipped(
    augmentation: Augmentation,
    line: str = "Values may lie beyond [0, 1] where they are not clipped",
) -> str:
    """Return a line about the parts that do not keep values in [0, 1]; empty if all do."""
    parts = leaves(augmentation)
    found = [repr(a) for a in parts if isinstance(a, jitter) or not getattr(a, "clip", True)]
    if not found:
        return ""
    return f"\n{line}: {listed(dict.fromkeys(found))}."


KIND_WORDS = {"image": "images", "series": "series", "sound": "sound", "vector": "tables"}


def may_have_colours(shape: Shape) -> bool:
    """Return whether images may have colours: some operations on colours need them."""
    return shape is None or len(shape) < 3 or shape[0] == 3


def is_grey_or_rgb(shape: Shape) -> bool:
    """Return whether images have one channel or three: some operations take no others."""
    return shape is None or len(shape) < 3 or shape[0] in (1, 3)


def shares(weights: Sequence[float]) -> list[float]:
    """Return probabilities with as many digits as matter."""
    return [round(weight, 6) for weight in weights]
