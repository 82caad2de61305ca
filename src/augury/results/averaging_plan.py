"""Where to average, as measured: plain, frozen, able to become a table, JSON or a figure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SCHEMA = 1


@dataclass(frozen=True)
class AveragingChoice:
    """Averaging at one layer, in one way."""

    layer: str
    order: int
    groups: int
    step: float
    """Seconds of a training step, measured."""
    share: float
    """The step over that of all versions through the whole network."""
    error: float
    """Mean over examples of |g − approximation|, over the same of |g − f|: 1 is no better than
    no augmentation, 0 is exact."""


def least_error(choice: AveragingChoice) -> tuple[float, float]:
    """Order choices by their error, and by their time where errors are the same."""
    return round(choice.error, 4), choice.step


@dataclass(frozen=True)
class LayerCost:
    """One layer: what lies before it and after it, and how invariant it is."""

    layer: str
    flops_before: int
    flops_after: int
    """Of a forward pass of one example, as torch counts them."""
    seconds_before: float
    seconds_after: float
    """Of a forward pass of the sample as it is, measured."""
    relative: float
    """How far versions lie from their example, relative to other examples (squared)."""


@dataclass(frozen=True)
class AveragingPlan:
    """All layers and ways of averaging that were measured, and the one to use."""

    places: tuple[LayerCost, ...]
    choices: tuple[AveragingChoice, ...]
    best: AveragingChoice
    """The least error among those that save enough; the least time, where none does."""
    fewer: tuple[AveragingChoice, ...]
    """The plain alternative: so many versions (`groups`) through the whole network, unaveraged."""
    saving: float
    augmentation: str
    n_views: int
    examples: int
    full_step: float
    single_step: float
    """Seconds of a training step of all versions, and of one version."""
    device: str

    @property
    def enough(self) -> bool:
        """Whether the best choice saves as much as was wanted."""
        return self.best.share <= 1 - self.saving

    def within(self, times: float) -> AveragingChoice | None:
        """Give the least error of a step that takes at most so many times that of one version."""
        fits = [c for c in self.choices if c.step <= times * self.single_step]
        return min(fits, key=least_error, default=None)

    @property
    def layer(self) -> str:
        """The layer to average at."""
        return self.best.layer

    def sentence(self) -> str:
        """Say what to do, what it costs, and what fewer versions would do for as much."""
        best = self.best
        how = f"order {best.order}" + (f", {best.groups} groups" if best.groups > 1 else "")
        text = (
            f"average {self.n_views} views at {best.layer!r} ({how}): a step takes "
            f"{best.share:.0%} of the time of all views, {best.step / self.single_step:.1f} times "
            f"that of one, and the loss is off by {best.error:.1%} of that without augmentation"
        )
        if not self.enough:
            text += f"; nothing measured saves the {self.saving:.0%} that were wanted"
        fit = [c for c in self.fewer if c.share <= max(best.share, 1 - self.saving)]
        if fit:
            other = min(fit, key=lambda c: c.error)
            text += (
                f"; {other.groups} versions without averaging would take {other.share:.0%} and be "
                f"off by {other.error:.1%}"
            )
        return text

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, as in the JSON."""
        return {"schema": SCHEMA, **asdict(self)}

    def to_json(self) -> str:
        """Write as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def to_frame(self) -> pd.DataFrame:
        """Give a pandas table, one choice a row, with what is known of its layer."""
        import pandas as pd

        places = {p.layer: asdict(p) for p in self.places}
        rows = [{**places[c.layer], **asdict(c)} for c in self.choices]
        return pd.DataFrame(rows).set_index(["layer", "order", "groups"])

    def plot(self) -> Figure:
        """Draw error against step time, each way of averaging a point; the best is marked."""
        from augury.report.averaging_plan import plan_figure

        return plan_figure(self)

    def __str__(self) -> str:
        from augury.report.averaging_plan import plan_text

        return plan_text(self)
