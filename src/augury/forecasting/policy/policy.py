"""A policy: an augmentation meant for training, with its forecast and how it was found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.adapters import export
from augury.augmentations import Augmentation, parse
from augury.augmentations.base import Nodes, Params
from augury.augmentations.words import WordedStep, in_words
from augury.results.base import Result
from augury.results.facts import (
    DataFacts,
    PlanFacts,
    RoundFacts,
    bad_classes,
    bad_interval,
    bad_probability,
    bad_time,
    bad_word,
    below_zero,
)
from augury.results.ranking import Gallery

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ROLES = ("chosen", "rival", "tried", "part", "milder", "stronger", "shorter")


@dataclass(frozen=True)
class PolicyRow:
    """One policy in the search: its spec, its forecast and the part it played."""

    spec: str
    role: str
    """``"chosen"``, ``"rival"``, ``"tried"``; or the choice varied: ``"part"`` (without one part),
    ``"milder"``, ``"stronger"`` or ``"shorter"`` (for half of the epochs)."""
    gain: float
    low: float
    high: float
    probability: float
    """That it is better than no augmentation."""
    rounds: int
    """How many rounds it took part in."""
    part: str = ""
    """The part that was left out, or the number of epochs, where the role is one of these."""
    allowed: bool = True
    """Whether it could be chosen: it has what was required, and nothing that was forbidden."""

    def _problem(self) -> str:
        return (
            bad_word("role", self.role, ROLES)
            or bad_interval(self.low, self.high)
            or bad_probability(self.probability)
            or below_zero(self, "rounds")
        )


@dataclass(frozen=True, repr=False)
class Policy(Augmentation, Result):
    """An augmentation chosen for a planned training.

    It works wherever an augmentation does; ``repr`` is its spec.
    """

    name: ClassVar[str] = "policy"

    spec: str
    rows: tuple[PolicyRow, ...]
    """All policies of the last round, best first."""
    baseline: float
    """Accuracy in per cent that is expected without augmentation."""
    reason: str
    """Why this one, in a sentence."""
    dataset: dict[str, Any] = field(metadata={"facts": DataFacts})
    plan: dict[str, Any] = field(metadata={"facts": PlanFacts})
    path: tuple[dict[str, Any], ...] = field(metadata={"facts": RoundFacts})
    """The rounds: what was tried, with how much work, and what led."""
    per_class: dict[str, tuple[float, float, float]]
    """The gain of each class under the choice, with its interval."""
    seed: int
    seconds: float
    command: str = ""
    trust: str = ""
    """How far such choices can be relied on."""
    gallery: Gallery | None = field(default=None, compare=False, metadata={"json": False})
    given: Augmentation | None = field(default=None, compare=False, metadata={"json": False})
    """The augmentation itself, where it is a pipeline of the user's that no spec can hold."""

    def _problem(self) -> str:
        chosen = sum(row.role == "chosen" for row in self.rows)
        if chosen != 1:
            return f"expected one row with the role chosen, got {chosen}"
        return bad_classes(self.per_class) or bad_time(self.seconds)

    def __repr__(self) -> str:
        return self.spec

    def __hash__(self) -> int:  # what it says of data and rounds is in dicts
        return hash((self.spec, self.seed, self.rows))

    @property
    def plain(self) -> Augmentation:
        return self.augmentation

    @cached_property
    def augmentation(self) -> Augmentation:
        """The augmentation itself."""
        return parse(self.spec) if self.given is None else self.given

    @property
    def chosen(self) -> PolicyRow:
        """The row of this policy."""
        return next(row for row in self.rows if row.role == "chosen")

    @property
    def rivals(self) -> tuple[PolicyRow, ...]:
        """The common recipes, best first."""
        return tuple(row for row in self.rows if row.role == "rival")

    @property
    def contributions(self) -> dict[str, float]:
        """What each part adds: the gain of the whole over the whole without it, in points."""
        whole = self.chosen.gain
        return {row.part: whole - row.gain for row in self.rows if row.role == "part"}

    @property
    def kinds(self) -> frozenset[str]:  # type: ignore[override]  # follows from the augmentation
        return self.augmentation.kinds

    @property
    def linear(self) -> bool:  # type: ignore[override]  # follows from the augmentation
        return self.augmentation.linear

    @property
    def size(self) -> int | None:  # type: ignore[override]  # follows from the augmentation
        return self.augmentation.size

    def draw(self, n: int, rng: Rng) -> Params:
        return self.augmentation.draw(n, rng)

    def nodes(self, n: int) -> Nodes | None:
        return self.augmentation.nodes(n)

    def apply(self, x: Tensor, params: Params) -> Tensor:
        return self.augmentation.apply(x, params)

    def check(self, shape: tuple[int, ...]) -> None:
        self.augmentation.check(shape)

    def at_scale(self, factor: float) -> Augmentation:
        return self.augmentation.at_scale(factor)

    @property
    def words(self) -> tuple[WordedStep, ...]:
        """What it does to an example, step by step; nothing if its spec cannot be read."""
        try:
            return in_words(self.augmentation)
        except AuguryError:  # a file does not hold the user's own pipeline
            return ()

    @property
    def code(self) -> dict[str, str]:
        """Code that builds it, by the name of its library; nothing if its spec cannot be read."""
        shape = self.dataset.get("shape") or ()
        known = shape if len(shape) == 3 else None
        try:
            other = export(self.augmentation, "torchvision", known)
        except AuguryError:
            return {}
        return {
            "In Python, with augury": f"augment = augury.parse({self.spec!r})",
            "The same with torchvision": other,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one row per policy of the last round."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows]).set_index("spec")

    def plot(self) -> Figure:
        """Draw the gains of the choice and its rivals with their intervals, best on top."""
        from augury.report.policy import policy_figure

        return policy_figure(self)

    def _report(self) -> Any:
        from augury.report import policy

        return policy


def unwritten(augmentation: Augmentation) -> Augmentation | None:
    """Return an augmentation that no spec can stand for, as with a function in it; else None."""
    try:
        return None if parse(repr(augmentation)) == augmentation else augmentation
    except AuguryError:
        return augmentation
