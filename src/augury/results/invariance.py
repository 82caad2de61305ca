"""How invariant the layers of a network are, as measured."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from augury._base.errors import AuguryError
from augury._base.given import check_kind
from augury._base.text import count, listed
from augury.results.base import Result
from augury.results.facts import DataFacts, bad_interval, bad_time, below_zero

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from augury.augmentations import Augmentation


@dataclass(frozen=True)
class LayerInvariance:
    """One layer under one augmentation."""

    layer: str
    augmentation: str
    size: int
    """The number of features."""
    distance: float
    """Δ: mean squared distance between an example and its views, per feature."""
    between: float
    """D: mean squared distance between different examples, per feature."""
    relative: float
    """Δ / D: 0 if the layer is invariant to the augmentation."""
    low: float | None
    high: float | None
    """The 95 % interval of `relative`; None if there are too few examples."""
    ratio: float | None = None
    """Δ divided by that of the other network: below 1 if this one is more invariant."""
    relative_ratio: float | None = None
    """The same for Δ / D, which does not change with the scale of a network's features."""
    against_low: float | None = None
    against_high: float | None = None
    """The 95 % interval of the other network's Δ / D."""

    def _problem(self) -> str:
        measured = ("size", "distance", "between", "relative", "ratio", "relative_ratio")
        return (
            below_zero(self, *measured)
            or bad_interval(self.low, self.high)
            or bad_interval(self.against_low, self.against_high)
        )

    @property
    def more_invariant(self) -> bool | None:
        """Whether this network is more invariant than the other; None if they do not differ.

        Judged by Δ / D. They differ if their intervals do not overlap or, where there are none, if
        the ratio differs from 1 in its first three decimals.
        """
        ratio = self.relative_ratio
        if ratio is None or abs(ratio - 1) < 0.0005:
            return None
        if self.low is None or self.high is None:
            return ratio < 1
        if self.against_low is None or self.against_high is None:
            return ratio < 1
        overlap = self.low <= self.against_high and self.against_low <= self.high
        return None if overlap else ratio < 1


@dataclass(frozen=True)
class InvarianceProfile(Result):
    """The invariance of each layer to each augmentation, and how it was measured."""

    name: ClassVar[str] = "invariance profile"

    rows: tuple[LayerInvariance, ...]
    network: str
    dataset: dict[str, Any] = field(metadata={"facts": DataFacts})
    """name, kind, examples, shape (a list) and notes."""
    n_views: int
    seed: int
    seconds: float
    command: str = ""
    against: str | None = None
    """The network compared with, if any."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers, from the input to the output."""
        return tuple(dict.fromkeys(row.layer for row in self.rows))

    @property
    def augmentations(self) -> tuple[str, ...]:
        """The augmentations, in the order given."""
        return tuple(dict.fromkeys(row.augmentation for row in self.rows))

    def _problem(self) -> str:
        pairs = [(row.layer, row.augmentation) for row in self.rows]
        expected = len(self.layers) * len(self.augmentations)
        if not pairs or len(pairs) != expected or len(set(pairs)) != expected:
            got = f"{count(len(pairs), 'row')} for {count(expected, 'pair')}" if pairs else "none"
            return f"expected one row for each layer under each augmentation, got {got}"
        return bad_time(self.seconds)

    def __getitem__(self, key: tuple[str, str | Augmentation]) -> LayerInvariance:
        """Return the row of a layer and an augmentation, given as such or as any of its specs."""
        if isinstance(key, tuple) and len(key) == 2:
            layer, augmentation = key[0], self._known(key[1])
            for row in self.rows:
                if (row.layer, row.augmentation) == (layer, augmentation):
                    return row
        raise KeyError(
            f"no row for {key!r}; layers: {listed(self.layers)}; augmentations: "
            f"{listed(self.augmentations)}"
        )

    def _known(self, augmentation: Any) -> str | None:
        """Return the name in `augmentations` of the same augmentation; None if it is not there."""
        if isinstance(augmentation, str) and augmentation in self.augmentations:
            return augmentation
        wanted = _parsed(augmentation)
        if wanted is None or repr(wanted) in self.augmentations:
            return wanted and repr(wanted)
        return next((name for name in self.augmentations if _parsed(name) == wanted), None)

    def __str__(self) -> str:
        from augury.report.invariance import profile_text

        return profile_text(self)

    def compare(self, other: InvarianceProfile) -> InvarianceProfile:
        """Return this profile with ratios to another network's, for example one trained without T.

        The networks must have the same layers. The ratio of distances is
        Δ_{l,T,T} / Δ_{l,T,∅} of the paper's last figure. Which network is more invariant is
        judged by the ratio of Δ / D, which does not change with the scale of the features.
        """
        check_kind("other", other, InvarianceProfile, "an InvarianceProfile")
        known = {(c.layer, c.augmentation): c for c in other.rows}
        missing = [c for c in self.rows if (c.layer, c.augmentation) not in known]
        if missing:
            raise AuguryError(
                f"the other network was not measured at layer {missing[0].layer!r} under "
                f"{missing[0].augmentation}; compare networks of the same architecture"
            )
        rows = []
        for row in self.rows:
            base = known[row.layer, row.augmentation]
            rows.append(
                replace(
                    row,
                    ratio=_ratio(row.distance, base.distance),
                    relative_ratio=_ratio(row.relative, base.relative),
                    against_low=base.low,
                    against_high=base.high,
                )
            )
        return replace(self, rows=tuple(rows), against=other.network)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one row per layer and augmentation."""
        import pandas as pd

        return pd.DataFrame([asdict(c) for c in self.rows]).set_index(["layer", "augmentation"])

    def plot(self) -> Figure:
        """Draw the relative distance along the layers; below it the ratio, if there is one."""
        from augury.report.invariance import profile_figure

        return profile_figure(self)

    def _report(self) -> Any:
        from augury.report import invariance

        return invariance


def _parsed(augmentation: Any) -> Augmentation | None:
    from augury import parse  # by its public name: augmentations lie above this layer

    try:
        return parse(augmentation)
    except AuguryError:
        return None


def _ratio(value: float, base: float) -> float | None:
    return value / base if base > 0 and math.isfinite(value / base) else None
