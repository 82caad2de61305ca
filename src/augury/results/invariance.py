"""What a network's layers make of augmentations: plain, frozen, able to become a page."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from augury._base.errors import AuguryError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SCHEMA = 1


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
class Profile:
    """The invariance of each layer to each augmentation, and how it was measured."""

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

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, as in the JSON."""
        values = {k: v for k, v in vars(self).items() if k != "cells"}
        return {"schema": SCHEMA, **values, "cells": [_plain(asdict(c)) for c in self.cells]}

    def to_json(self) -> str:
        """Write as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Read what `to_json` wrote."""
        data = json.loads(text)
        data.pop("schema")
        cells = tuple(
            Cell(**{**c, "relative": math.inf if c["relative"] is None else c["relative"]})
            for c in data.pop("cells")
        )
        return cls(cells=cells, **data)

    def to_frame(self) -> pd.DataFrame:
        """Give a pandas table, one layer and augmentation a row."""
        import pandas as pd

        return pd.DataFrame([asdict(c) for c in self.cells]).set_index(["layer", "augmentation"])

    def plot(self) -> Figure:
        """Draw the relative distance along the layers; below it the ratio, where there is one."""
        from augury.report.layers import profile_figure

        return profile_figure(self)

    def to_html(self) -> str:
        """Write the report: one self-contained page."""
        from augury.report.layers import to_html

        return to_html(self)

    def to_markdown(self) -> str:
        """Write the report as Markdown."""
        from augury.report.layers import to_markdown

        return to_markdown(self)


def _ratio(value: float, base: float) -> float | None:
    return value / base if base > 0 and math.isfinite(value / base) else None


def _plain(cell: dict[str, Any]) -> dict[str, Any]:
    """Write what is infinite as null: JSON knows no infinity."""
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in cell.items()
    }
