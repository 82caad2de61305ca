"""What a ranking found: candidates, their gains and how they were judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from augury.report.words import TRAINED, VERDICTS
from augury.results.base import Result
from augury.results.facts import (
    DataFacts,
    EffortFacts,
    PlanFacts,
    bad_classes,
    bad_interval,
    bad_probability,
    bad_time,
    bad_word,
)
from augury.results.strength import StrengthCurve, strength_curves

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Row:
    """One candidate: its score, its gain over no augmentation and what follows from it."""

    augmentation: str
    score: float
    gain: float
    low: float
    high: float
    verdict: str
    per_class: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """The gain of each class with the ends of its 95 % interval; empty for a real target."""
    family: str = ""
    """The family of a plain augmentation that has a strength; empty for others."""
    magnitude: float | None = None
    """How strong the setting is within its family: larger is stronger."""
    strongest: bool = False
    """Whether the family has no stronger setting."""
    probability: float | None = None
    """That the candidate helps; None where the score does not know."""
    code: str = ""
    """Python that applies the candidate, to paste into a training script."""

    def _problem(self) -> str:
        return (
            bad_word("verdict", self.verdict, VERDICTS)
            or bad_interval(self.low, self.high)
            or bad_probability(self.probability)
            or bad_classes(self.per_class)
        )


@dataclass(frozen=True)
class Baseline:
    """The score without augmentation, with its own 95 % interval."""

    score: float
    low: float
    high: float
    faultless: bool = False
    """Whether every held-out example was classified correctly in every fold of the trial."""

    def _problem(self) -> str:
        return bad_interval(self.low, self.high)


@dataclass(frozen=True)
class Trend:
    """The expected gain of one candidate against one part of the plan, all else kept."""

    augmentation: str
    along: str
    """What changes: ``"epochs"`` or ``"examples"``."""
    values: tuple[float, ...]
    gains: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    def _problem(self) -> str:
        sizes = [len(part) for part in (self.values, self.gains, self.lows, self.highs)]
        if len(set(sizes)) > 1 or not sizes[0]:
            return f"expected as many values as gains, lows and highs, got {sizes}"
        ends = (bad_interval(*pair) for pair in zip(self.lows, self.highs, strict=True))
        return bad_word("along", self.along, ("epochs", "examples")) or next(filter(None, ends), "")


@dataclass(frozen=True)
class Gallery:
    """Pictures for people: a few originals and some of their views.

    Images are uint8 of shape ``(originals, views, height, width, 3)``; series are floats of shape
    ``(originals, views, channels, length)``, and so is sound, which has a sample rate. The
    originals themselves have one view.
    """

    originals: np.ndarray
    views: dict[str, np.ndarray]
    rate: int | None = None


@dataclass(frozen=True)
class Ranking(Result):
    """Candidates from best to worst, and how they were judged."""

    name: ClassVar[str] = "ranking"

    rows: tuple[Row, ...]
    baseline: Baseline
    dataset: dict[str, Any] = field(metadata={"facts": DataFacts})
    """name, kind, examples, shape (a list), classes and counts (lists, or None) and notes."""
    score: str
    features: str
    seed: int
    n_views: int
    seconds: float
    command: str = ""
    trust: str = ""
    """How far the score can be relied on for this kind of data, in a sentence."""
    plan: dict[str, Any] = field(default_factory=dict, metadata={"facts": PlanFacts})
    """The training that the forecast is for: epochs, examples, side, network, and `assumed`."""
    effort: dict[str, Any] = field(default_factory=dict, metadata={"facts": EffortFacts})
    """What was done to find out, such as steps, examples and repeats of the trial."""
    warnings: tuple[str, ...] = ()
    """What a reader must know before the numbers; with any, no verdict is given."""
    extrapolation: tuple[Trend, ...] = ()
    """How the leaders' gains change with the plan."""
    gallery: Gallery | None = field(
        default=None, repr=False, compare=False, metadata={"json": False}
    )

    def _problem(self) -> str:
        return bad_time(self.seconds)

    @property
    def in_points(self) -> bool:
        """Whether gains are points of accuracy or of R², not a closed form's own unit."""
        return self.score in TRAINED

    def best(self) -> Row | None:
        """Return the leading candidate that helps; None if none is known to."""
        return next((row for row in self.rows if row.verdict == "helps"), None)

    def curves(self, fewest: int = 2) -> list[StrengthCurve]:
        """Return gain against strength for the families tried at `fewest` strengths or more."""
        return [curve for curve in self._curves if curve.strengths >= fewest]

    @cached_property
    def _curves(self) -> list[StrengthCurve]:
        return strength_curves(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __bool__(self) -> bool:
        return True  # a ranking without rows is still a result

    def __getitem__(self, augmentation: str | int) -> Row:
        if isinstance(augmentation, int):
            return self.rows[augmentation]
        for row in self.rows:
            if row.augmentation == augmentation:
                return row
        raise KeyError(augmentation)

    def __str__(self) -> str:
        return "\n".join(
            f"{r.augmentation}: {r.gain:+.3g} ({r.low:+.3g} to {r.high:+.3g}), {r.verdict}"
            for r in self.rows
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one row per candidate, with its numbers."""
        import pandas as pd

        rows = [asdict(row) for row in self.rows]
        names = [f.name for f in fields(Row) if f.name not in ("per_class", "code")]
        return pd.DataFrame(rows, columns=names).set_index("augmentation")  # there may be no row

    def plot(self) -> Figure:
        """Draw the gains with their intervals, best on top."""
        from augury.report.charts import ranked_figure

        return ranked_figure(self)

    def _report(self) -> Any:
        from augury import report

        return report
