"""What a policy can be: the common recipes, and stacks and mixtures of what helps by itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

from augury._base.errors import AuguryError
from augury.augmentations import (
    FAMILIES,
    Augmentation,
    Chain,
    Family,
    Mixture,
    Then,
    default_augmentations,
    identity,
    parse,
)
from augury.augmentations.combine import Power

RIVALS = (
    "trivial_augment",
    "trivial_augment(2)",
    "trivial_augment(3)",
    "trivial_augment(4)",
    "(identity | trivial_augment) ** 2",
    "rand_augment(2,9)",
    "horizontal_flip >> translation(0.125)",
    "resized_crop(0.25) >> horizontal_flip",
    "horizontal_flip >> translation(0.125) >> cutout(0.5)",
)
"""What people train with who choose nothing: they take part, and win if nothing is better.

``(identity | trivial_augment) ** 2`` is UniformAugment's mixture: two operations, each applied with
a uniform probability, at a uniform strength.
"""

GROUPS = {
    "colour": (
        "saturation", "hue", "grayscale", "brightness", "contrast", "gamma", "autocontrast",
        "equalize", "invert", "solarize", "posterize",
    ),
    "flips": ("horizontal_flip", "vertical_flip", "flips"),
    "geometry": (
        "rotation", "quarter_turns", "translation", "scaling", "shear", "perspective",
        "resized_crop", "elastic", "horizontal_flip", "vertical_flip", "flips",
    ),
}  # fmt: skip
"""Names that stand for several families."""

_SIZES = (2, 3, 4, 6, 8)


@dataclass(frozen=True)
class Space:
    """Which policies may be chosen: always with some parts, never with some families."""

    always: tuple[Augmentation, ...] = ()
    never: frozenset[str] = frozenset()

    @property
    def required(self) -> tuple[Augmentation, ...]:
        """What a policy must have, and its parts, as a policy holds them."""
        parts = (a.parts if isinstance(a, Then) else () for a in self.always)
        return (*self.always, *itertools.chain.from_iterable(parts))

    @classmethod
    def of(cls, always: Iterable[str | Augmentation], never: Iterable[str]) -> Space:
        """Read what the user fixed and forbade; raise where both name the same family."""
        fixed = tuple(parse(spec) for spec in always)
        forbidden: set[str] = set()
        for name in never:
            if name not in FAMILIES and name not in GROUPS:
                known = ", ".join(
                    [*GROUPS, *(n for n, f in FAMILIES.items() if "image" in f.kinds)]
                )
                raise AuguryError(
                    f"never must name a family or a group of families, got {name!r}; known: {known}"
                )
            forbidden.update(GROUPS.get(name, (name,)))
        for part in fixed:
            if clash := families_of(part) & forbidden:
                raise AuguryError(
                    f"{sorted(clash)[0]} is in both always and never; remove it from one of them"
                )
        return cls(fixed, frozenset(forbidden))

    def allows(self, augmentation: Augmentation) -> bool:
        """Return whether a policy has no forbidden family, nor a recipe that may draw one."""
        names = families_of(augmentation)
        if self.never and names & {"trivial_augment", "rand_augment"}:
            return False
        return not names & self.never

    def complete(self, augmentation: Augmentation) -> Augmentation:
        """Return a policy with the fixed parts before it."""
        parts = [*self.always, *([] if isinstance(augmentation, identity) else [augmentation])]
        return parts[0] if len(parts) == 1 else Then.of(*parts) if parts else augmentation

    def singles(
        self, kind: str, shape: tuple[int, ...], strengths: bool = True
    ) -> list[Augmentation]:
        """Return the families to build from, at several strengths or at the middle one."""
        recipes = {"trivial_augment", "rand_augment"}
        families: dict[str, list[Augmentation]] = {}
        for found in default_augmentations(kind, shape):
            if self.allows(found) and not families_of(found) & recipes:
                families.setdefault(type(found).__name__, []).append(found)
        if not strengths:
            families = {name: [a[(len(a) - 1) // 2]] for name, a in families.items()}
        return [a for settings in families.values() for a in settings]

    def rivals(self) -> list[Augmentation]:
        """Return the common recipes."""
        return [parse(spec) for spec in RIVALS]


def build(
    helping: Sequence[Augmentation], harmless: Sequence[Augmentation] = ()
) -> list[Augmentation]:
    """Return policies made of augmentations that help by themselves, best first.

    Of the best 2, 3, 4, 6 and 8: one at random; two draws; each half of the time; the best always
    and then one of the others half of the time. Besides, a Markov chain of the best three, the
    best before TrivialAugment, the best two always, and one to four draws from all that is
    harmless.
    """
    policies: list[Augmentation] = list(helping[:3])
    for size in _SIZES:
        if size > len(helping):
            break
        parts = list(helping[:size])
        one = Mixture.of(*parts)
        policies += [one, Power(one, 2)]
        policies.append(Then.of(*(_half(part) for part in parts[:4])))
        others = parts[1:]
        policies.append(Then.of(parts[0], Mixture.of(identity(), *others)))
        policies.append(
            Then.of(parts[0], _half(Mixture.of(*others) if len(others) > 1 else others[0]))
        )
    if len(helping) >= 2:
        policies.append(Then.of(*helping[:2]))
    if len(helping) >= 3:
        policies.append(Chain(tuple(helping[:3]), (0.6, 0.4, 0.4)))
    if helping:
        policies.append(Then.of(helping[0], parse("trivial_augment")))
        policies.append(Then.of(helping[0], _half(parse("trivial_augment"))))
    if len(helping) > _SIZES[-1]:
        policies.append(Mixture.of(*helping))
    if len(harmless) > max(1, len(helping)):
        everything = Mixture.of(*harmless)
        policies += [everything, *(Power(everything, times) for times in (2, 3, 4))]
    return list(dict.fromkeys(policies))


def best_of_families(
    singles: Sequence[Augmentation], gains: Sequence[float], least: float
) -> list[Augmentation]:
    """Return each family's best setting, best first, where it gains more than `least`."""
    best: dict[str, tuple[float, Augmentation]] = {}
    for single, gain in zip(singles, gains, strict=True):
        name = type(single).__name__ if isinstance(single, Family) else repr(single)
        if gain > least and gain > best.get(name, (-1e9, single))[0]:
            best[name] = (gain, single)
    return [single for _, single in sorted(best.values(), key=lambda pair: -pair[0])]


def parts_of(augmentation: Augmentation) -> tuple[Augmentation, ...]:
    """Return the parts that can be left out: of a sequence, a mixture, a chain or a power."""
    if isinstance(augmentation, Power):
        return parts_of(augmentation.base)
    if isinstance(augmentation, Then | Mixture | Chain):
        found = [part for part in augmentation.parts if not isinstance(part, identity)]
        return tuple(p for part in found for p in (parts_of(part) or (part,)))
    return () if isinstance(augmentation, identity) else (augmentation,)


def without(augmentation: Augmentation, part: Augmentation) -> Augmentation:
    """Return an augmentation with one part replaced by no change."""
    if augmentation == part:
        return identity()
    if isinstance(augmentation, Then):
        kept = [without(p, part) for p in augmentation.parts]
        kept = [p for p in kept if not isinstance(p, identity)]
        return identity() if not kept else kept[0] if len(kept) == 1 else Then.of(*kept)
    return _rebuilt(augmentation, lambda p: without(p, part))


def with_strength(
    augmentation: Augmentation, step: int, fixed: Sequence[Augmentation] = ()
) -> Augmentation:
    """Return an augmentation milder (−1) or stronger (+1): each family half of a rung away.

    The parts that are `fixed` stay as they are.
    """
    if augmentation in fixed:
        return augmentation
    if not isinstance(augmentation, Family) or augmentation.magnitude is None:
        return _rebuilt(augmentation, lambda p: with_strength(p, step, fixed))
    family, here = type(augmentation), augmentation.magnitude
    rungs = {float(family(*rung).magnitude or 0.0): rung for rung in family.ladder}
    beyond = [size for size in rungs if (size - here) * step > 0]
    if not beyond:
        return augmentation
    rung = rungs[min(beyond, key=lambda size: abs(size - here))]
    names = [field.name for field in fields(augmentation)][: len(rung)]  # type: ignore[arg-type]  # families are dataclasses
    values = [(getattr(augmentation, n) + there) / 2 for n, there in zip(names, rung, strict=True)]
    whole = all(isinstance(value, int) for rung in family.ladder for value in rung)
    between = tuple(round(value) if whole else round(value, 3) for value in values)
    if whole and between in family.ladder:  # nothing lies between, as of one and two operations
        return augmentation
    changed = dict(zip(names, between, strict=True))
    return replace(augmentation, **changed)  # type: ignore[type-var]  # families are dataclasses


def strength(augmentation: Augmentation) -> float:
    """Return how strong the families are on average, from 0 (their mildest setting) to 1."""
    found = [_rung(part) for part in parts_of(augmentation)]
    return sum(found) / len(found) if found else 0.0


def _rung(part: Augmentation) -> float:
    if not isinstance(part, Family) or (own := part.magnitude) is None:
        return 0.0
    ends = [type(part)(*part.ladder[k]).magnitude for k in (0, -1)]
    low, high = (float(end or 0.0) for end in ends)
    return (own - low) / (high - low)


def _rebuilt(
    augmentation: Augmentation, change: Callable[[Augmentation], Augmentation]
) -> Augmentation:
    """Return a composite with each of its parts changed; what has no parts as it is."""
    if isinstance(augmentation, Power):
        return replace(augmentation, base=change(augmentation.base))
    if isinstance(augmentation, Then | Mixture | Chain):
        return replace(augmentation, parts=tuple(map(change, augmentation.parts)))
    return augmentation


def families_of(augmentation: Augmentation) -> set[str]:
    """Return the names of all families that an augmentation is made of."""
    parts = parts_of(augmentation)
    if parts and parts != (augmentation,):
        return set().union(*(families_of(part) for part in parts))
    return {type(augmentation).__name__}


def complexity(augmentation: Augmentation) -> float:
    """Return the expected number of operations, and a tenth for each part that must be known."""
    operations = _expected(augmentation, lambda part: getattr(part, "operations", 1))
    return operations + 0.1 * len(parts_of(augmentation))


def applications(augmentation: Augmentation, part: Augmentation) -> float:
    """Return how often a part is applied to an example, on average."""
    return _expected(augmentation, lambda own: own == part)


def _expected(augmentation: Augmentation, count: Callable[[Augmentation], float]) -> float:
    """Return the mean of a count over what is drawn, from the counts of its parts."""
    if isinstance(augmentation, identity):
        return 0.0
    if isinstance(augmentation, Power):
        return augmentation.times * _expected(augmentation.base, count)
    if isinstance(augmentation, Then):
        return sum(_expected(part, count) for part in augmentation.parts)
    if isinstance(augmentation, Chain | Mixture):
        chain = isinstance(augmentation, Chain)
        shares = augmentation.rates if chain else augmentation.probabilities.tolist()
        each = zip(shares, augmentation.parts, strict=True)
        return sum(share * _expected(part, count) for share, part in each)
    return float(count(augmentation))


def _half(part: Augmentation) -> Augmentation:
    return Mixture.of(identity(), part) if not isinstance(part, Mixture) else Mixture(
        (identity(), *part.parts), (sum(part.weights), *part.weights)
    )  # fmt: skip
