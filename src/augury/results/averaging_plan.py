"""What averaging at each layer costs and how close it comes to full augmentation, as measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from augury.report.words import per_cent
from augury.results.base import Result
from augury.results.facts import below_zero

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

CLOSE = 0.05
"""Errors that differ by less are about equal: the share of the gain that is kept has a standard
error of 0.05 or more in the benchmarks."""
ABOUT = 1.1
"""Times within this factor are about equal: a step's time varies by a tenth between moments."""


@dataclass(frozen=True)
class AveragingChoice:
    """One way to compute the loss of a training step, with its measured time and error."""

    layer: str | None
    """Where features are averaged; None for no averaging."""
    order: int
    """1 or 2; 0 for no averaging."""
    groups: int
    """Number of averages; without averaging, the number of views."""
    n_views: int
    """Views of each example in a step; 0 for the examples as they are."""
    random: bool
    """Whether new views are drawn at each step, instead of the fixed views of the rule."""
    step: float
    """Seconds of a training step."""
    share: float
    """`step` divided by the time of a step on all views through the whole network."""
    error: float
    """Distance of the mean gradient from that of full augmentation, divided by the distance of
    the gradient without augmentation: 0 is full augmentation, 1 no better than none. For random
    views the mean is over as many steps as full augmentation has views."""

    def _problem(self) -> str:
        if self.order not in (0, 1, 2) or (self.order == 0) != (self.layer is None):
            return (
                "expected order 0 for no averaging, or a layer and order 1 or 2, got order "
                f"{self.order} at layer {self.layer}"
            )
        return below_zero(self, "groups", "n_views", "step", "share", "error")

    @property
    def harmful(self) -> bool:
        """Whether training this way is expected to do worse than no augmentation.

        Either the error is at least 1, or all views are averaged into one at the first order:
        in the benchmarks that lost accuracy at every layer, on MNIST and on CIFAR-10, even where
        the error was small, since the network never sees features that are not averages. Random
        views are unbiased. The second order is never marked, since no rule was found for it: with
        10,000 images it gained accuracy on average at every layer, but with all images at the
        paper's settings, averaged at the input, it lost some on both sets.
        """
        if self.n_views == 0 or self.order == 2 or (self.random and self.layer is None):
            return False
        return self.error >= 1 or (self.order == 1 and self.groups == 1)

    @property
    def name(self) -> str:
        """What is done, in words."""
        if self.n_views == 0:
            return "no augmentation"
        if self.random and self.layer is None:
            return "1 random view" if self.n_views == 1 else f"{self.n_views} random views"
        if self.layer is None:
            return f"{self.n_views} views"
        parts = f"1 average of {self.n_views}"
        if self.groups > 1:
            parts = f"{self.groups} averages of {self.n_views // self.groups}"
        second = ", second order" if self.order == 2 else ""
        return f"{parts} views at {self.layer}{second}"

    def code(self, augmentation: str) -> str:
        """Return a line of Python that computes this loss in the step with number `step`."""
        if self.n_views == 0:
            return "loss = F.cross_entropy(network(x), y)"
        if self.layer is None and self.n_views == 1:
            rng = "augury.Rng(step, torch.arange(len(x), device=x.device))"
            view = f'augury.parse("{augmentation}").views(x, 1, {rng})[0]'
            return f"loss = F.cross_entropy(network({view}), y)"
        layer = "input" if self.layer is None else self.layer
        options = f", groups={self.groups}" if self.groups > 1 else ""
        seed = ""
        if self.order == 2:
            options += ", order=2, directions=1"
        if self.random:
            options += ", rule=False"
        if self.random or self.order == 2:
            seed = ", seed=step"
        call = f'augury.Averaging("{augmentation}", "{layer}", n_views={self.n_views}{options})'
        return f"loss = {call}.loss(network, x, y{seed})"


def recommend(choices: list[AveragingChoice]) -> AveragingChoice:
    """Return the fastest choice whose error is about the least; at about that time, the closest.

    No other choice is both faster and more accurate, so it lies on the Pareto front.
    """
    least = min(choice.error for choice in choices)
    fastest = min(choice.step for choice in choices if choice.error <= least + CLOSE)
    return min((c for c in choices if c.step <= ABOUT * fastest), key=lambda c: (c.error, c.step))


@dataclass(frozen=True)
class LayerCost:
    """One layer: the work before and after it, and how invariant it is."""

    layer: str
    flops_before: int
    flops_after: int
    """Of a forward pass of one example, as torch counts them."""
    relative: float
    """Squared distance of views from their example, relative to that between examples."""


@dataclass(frozen=True)
class AveragingPlan(Result):
    """The measured ways of averaging, the usual alternatives, and the recommended choice."""

    name: ClassVar[str] = "averaging plan"

    choices: tuple[AveragingChoice, ...]
    """From the fastest to the slowest; among them no augmentation, one random view per step (the
    usual practice), a few views without averaging, and all views."""
    best: AveragingChoice
    """Recommended: about the least error among the choices that save enough and do no harm."""
    layers: tuple[LayerCost, ...]
    saving: float
    augmentation: str
    n_views: int
    examples: int
    device: str

    def _problem(self) -> str:
        known = {cost.layer for cost in self.layers}
        unknown = [c for c in self.choices if c.layer is not None and c.layer not in known]
        if unknown:
            return f"a choice averages at {unknown[0].layer!r}, which is not among the layers"
        if not any(_is_usual(c) for c in self.choices):
            return "no choice is one random view per step, the usual practice"
        if self.best.name not in {c.name for c in self.choices}:
            return f"the best choice, {self.best.name}, is not among the choices"
        return "" if 0 < self.saving < 1 else f"expected a saving from 0 to 1, got {self.saving:g}"

    @property
    def enough(self) -> bool:
        """Whether the recommended choice saves as much as was wanted."""
        return self.best.share <= 1 - self.saving

    @property
    def layer(self) -> str | None:
        """The layer to average at; None if averaging is not recommended."""
        return self.best.layer

    @property
    def usual(self) -> AveragingChoice:
        """One random view per step, the usual practice."""
        return next(c for c in self.choices if _is_usual(c))

    @property
    def front(self) -> tuple[AveragingChoice, ...]:
        """The harmless choices that no other one beats in both time and error, fastest first."""
        found: list[AveragingChoice] = []
        for choice in sorted(self.choices, key=lambda c: (c.step, c.error)):
            if not choice.harmful and (not found or choice.error < found[-1].error):
                found.append(choice)
        return tuple(found)

    def within(self, times: float) -> AveragingChoice | None:
        """Return the best harmless choice of at most `times` the step of one random view."""
        fits = [c for c in self.choices if useful(c) and c.step <= times * self.usual.step]
        return recommend(fits) if fits else None

    def sentences(self) -> list[str]:
        """Return the recommendation and its cost, the usual practice, and what does harm."""
        best, usual = self.best, self.usual
        said = [f"Use {_described(best)}."]
        if not self.enough:
            said.append(f"No harmless choice saves the requested {per_cent(self.saving)}.")
        if best != usual:
            said.append(f"The usual practice: {_described(usual)}, unbiased but noisy.")
        harm = [c for c in self.choices if c.harmful]
        if harm:
            worst = max(harm, key=lambda c: c.error)
            if len(harm) == 1:
                said.append(f"One choice is expected to do harm: {_described(worst)}.")
            else:
                said.append(
                    f"{len(harm)} of the choices are expected to do harm, such as "
                    f"{_described(worst)}."
                )
        return said

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one row per choice."""
        import pandas as pd

        layers = {None: {"flops_before": None, "flops_after": None, "relative": None}}
        layers |= {cost.layer: asdict(cost) for cost in self.layers}
        rows = [
            {"name": c.name, **asdict(c), "harmful": c.harmful, **layers[c.layer], "layer": c.layer}
            for c in self.choices
        ]
        return pd.DataFrame(rows).set_index("name")

    def plot(self) -> Figure:
        """Draw error against step time, one point per choice; the recommended one is ringed."""
        from augury.report.averaging_plan import plan_figure

        return plan_figure(self)

    def _report(self) -> Any:
        from augury.report import averaging_plan

        return averaging_plan

    def __str__(self) -> str:
        from augury.report.averaging_plan import plan_text

        return plan_text(self)


def _is_usual(choice: AveragingChoice) -> bool:
    return choice.random and choice.layer is None and choice.n_views == 1


def useful(choice: AveragingChoice) -> bool:
    """Return whether a choice augments and is not expected to do harm."""
    return choice.n_views > 0 and not choice.harmful


def _described(choice: AveragingChoice) -> str:
    share, error = per_cent(choice.share), per_cent(choice.error)
    return f"{choice.name} ({share} of the time of all views, error {error})"
