"""What a network's layers make of augmentations: plain, frozen, able to become a page."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from augury._base.errors import AuguryError
from augury.results.base import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Cell:
    """One layer under one augmentation."""

    layer: str
    augmentation: str
    size: int
    """The number of features."""
    distance: float
    """Δ: how far versions lie from their example, squared, a feature."""
    between: float
    """D: how far different examples lie from one another, squared, a feature."""
    relative: float
    """Δ / D: 0 where the layer does not see the augmentation."""
    low: float | None
    high: float | None
    """The 95 % interval of `relative`; None where examples are too few."""
    ratio: float | None = None
    """Δ here over Δ of the network compared with: below 1 where this one is the more invariant."""
    relative_ratio: float | None = None
    """The same of Δ / D, which does not change when a network's features are all made smaller."""


@dataclass(frozen=True)
class Profile(Result):
    """The invariance of each layer to each augmentation, and how it was measured."""

    name: ClassVar[str] = "invariance profile"

    cells: tuple[Cell, ...]
    model: str
    dataset: dict[str, Any]
    """name, kind, examples, shape (a list) and notes."""
    versions: int
    seed: int
    seconds: float
    command: str = ""
    against: str | None = None
    """The network that ratios are taken to, where there are any."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers, from the input to the output."""
        return tuple(dict.fromkeys(cell.layer for cell in self.cells))

    @property
    def augmentations(self) -> tuple[str, ...]:
        """The augmentations, as they were given."""
        return tuple(dict.fromkeys(cell.augmentation for cell in self.cells))

    def __getitem__(self, key: tuple[str, str]) -> Cell:
        for cell in self.cells:
            if (cell.layer, cell.augmentation) == key:
                return cell
        raise KeyError(key)

    def over(self, other: Profile) -> Profile:
        """Compare with another network of the same layers, for example one trained without T.

        The ratio of distances is Δ_{l,T,T} / Δ_{l,T,∅} of the paper's last figure.
        """
        known = {(c.layer, c.augmentation): c for c in other.cells}
        missing = [c for c in self.cells if (c.layer, c.augmentation) not in known]
        if missing:
            raise AuguryError(
                f"the other network has no layer {missing[0].layer!r} measured under "
                f"{missing[0].augmentation}; compare networks of one architecture"
            )
        cells = []
        for cell in self.cells:
            base = known[cell.layer, cell.augmentation]
            cells.append(
                replace(
                    cell,
                    ratio=_ratio(cell.distance, base.distance),
                    relative_ratio=_ratio(cell.relative, base.relative),
                )
            )
        return replace(self, cells=tuple(cells), against=other.model)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one row per layer and augmentation."""
        import pandas as pd

        return pd.DataFrame([asdict(c) for c in self.cells]).set_index(["layer", "augmentation"])

    def plot(self) -> Figure:
        """Draw the relative distance along the layers; below it the ratio, where there is one."""
        from augury.report.layers import profile_figure

        return profile_figure(self)

    def to_html(self) -> str:
        """Return the report: one self-contained page."""
        from augury.report.layers import to_html

        return to_html(self)

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        from augury.report.layers import to_markdown

        return to_markdown(self)


def _ratio(value: float, base: float) -> float | None:
    return value / base if base > 0 and math.isfinite(value / base) else None
