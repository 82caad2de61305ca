"""Where in a network to average: the time and the error of each choice, measured on a sample."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.given import as_names, as_seed, as_whole, check_targets
from augury._base.limits import MOST_VIEWS
from augury._base.rng import Rng
from augury._base.text import kind_of
from augury.augmentations import Augmentation, parse
from augury.networks.averaging.average import Averaging
from augury.networks.averaging.loss import LossLike, check_floats
from augury.networks.averaging.views import views_of
from augury.networks.invariance import measure_invariance
from augury.networks.layers.find import check_runs, unwrapped
from augury.networks.layers.paths import cut_at, cuts
from augury.networks.planning.timing import distance, flops_before, gradient, in_mode, seconds
from augury.objectives import Loss, any_loss, multinomial
from augury.results.averaging_plan import (
    AveragingChoice,
    AveragingPlan,
    LayerCost,
    recommend,
    useful,
)

_MOST_REPEATS = 1000
"""Steps timed of each choice: the time of a step varies by a tenth however many are averaged."""


def plan_averaging(
    network: nn.Module,
    x: Tensor,
    augmentation: Augmentation | str,
    y: Tensor | None = None,
    *,
    n_views: int = 16,
    saving: float = 0.5,
    layers: Sequence[str] | None = None,
    max_layers: int = 6,
    groups: Sequence[int] = (1, 4),
    loss: LossLike = multinomial,
    repeats: int = 5,
    seed: int = 0,
) -> AveragingPlan:
    """Measure averaging at the layers of a network, and recommend how to train on many views.

    Averaging is compared with the usual ways: one random view per step, a few views of the rule
    without averaging, all views, and no augmentation. Steps (views, loss and gradient) are timed in
    training mode. The error is that of the gradient in eval mode: its distance from the gradient
    of full augmentation, relative to the distance without augmentation. Random choices are averaged
    over as many steps as there are views, because noise cancels over the course of training and
    bias does not. Views that no rule gives, such as two of the four of ``flips``, are drawn. The
    network is left unchanged; train it a little first, because augmentation hardly affects the
    gradient of an untrained network.

    Parameters
    ----------
    network
        The network, on the device on which it will be trained; a compiled network is timed
        compiled.
    x, y
        A sample as large as a training batch. Without targets, the network's own predictions are
        used.
    augmentation
        T, or a spec.
    n_views
        Number of views to average.
    saving
        Fraction of the time of a full step to save, in (0, 1).
    layers
        Layers to measure; by default, at most `max_layers` of the layers that cut the network,
        including the input, spread evenly over its work.
    max_layers
        See `layers`.
    groups
        Numbers of groups to try, see `Averaging`; numbers that do not divide n_views are skipped.
    loss
        As in `Averaging.losses`.
    repeats
        Number of timed runs of each step; the median is reported.
    seed
        Random seed of the views, if they are drawn.

    Examples
    --------
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    >>> x = torch.rand(8, 1, 8, 8)
    >>> found = plan_averaging(network, x, "rotation(15)", n_views=4, repeats=1)
    >>> found.best.harmful
    False
    """
    if not isinstance(saving, Real) or not 0 < saving < 1:
        raise AuguryError(f"saving must be a fraction between 0 and 1, got {saving!r}")
    n_views = as_whole("n_views", n_views, 2, MOST_VIEWS)
    max_layers = as_whole("max_layers", max_layers, 1)
    repeats, seed = as_whole("repeats", repeats, 1, _MOST_REPEATS), as_seed(seed)
    if not isinstance(groups, Iterable) or isinstance(groups, str | bytes):
        raise AuguryError(f"groups must be a sequence of integers, got {groups!r}")
    groups = [as_whole("groups", number, 1) for number in groups]
    check_floats(x)
    inner = unwrapped(network)
    sample = _Sample(x, y, parse(augmentation), n_views, any_loss(loss), seed)
    with in_mode(inner, False):
        with torch.no_grad():
            check_runs(inner, x, type(inner).__name__)
            sample = sample.with_targets(inner)
            costs = _costs(inner, layers, max_layers, sample)
        with torch.enable_grad():
            choices = list(sample.choices([cost.layer for cost in costs], groups))
            errors = sample.errors(inner, choices)
    with in_mode(inner, True), torch.enable_grad():
        runs = {c: lambda c=c: gradient(inner, sample.loss_of(network, c)) for c in choices}
        took = seconds(runs, x.device, repeats)
    full = took[choices[0]]
    measured = [
        replace(c, step=took[c], share=took[c] / full, error=error)
        for c, error in zip(choices, errors, strict=True)
    ]
    harmless = [c for c in measured if useful(c)]
    fits = [c for c in harmless if c.share <= 1 - saving]
    return AveragingPlan(
        choices=tuple(sorted(measured, key=lambda c: c.step)),
        best=recommend(fits) if fits else min(harmless, key=lambda c: c.step),
        layers=tuple(costs),
        saving=saving,
        augmentation=repr(sample.augmentation),
        n_views=n_views,
        examples=len(x),
        device=str(x.device),
    )


def _costs(
    network: nn.Module, layers: Sequence[str] | None, most: int, sample: _Sample
) -> list[LayerCost]:
    """Return the work before and after the layers to measure, and how invariant they are."""
    x = sample.x
    names = cuts(network, x) if layers is None else as_names("layers", layers)
    for name in names if layers is not None else ():
        cut_at(network, name, x)  # raises where a layer does not cut
    before, total = flops_before(network, x[:2], names)
    chosen = range(len(names)) if layers is not None else _spread(before, total, most)
    names = [names[k] for k in chosen]
    found = measure_invariance(
        network, x, sample.augmentation, layers=names, n_views=sample.n_views, seed=sample.seed
    )
    return [
        LayerCost(
            name,
            before[k],
            total - before[k],
            found[name, repr(sample.augmentation)].relative,
        )
        for name, k in zip(names, chosen, strict=True)
    ]


def _spread(before: list[int], total: int, most: int) -> list[int]:
    """Return the indices of at most so many layers, the input first, spread over the work.

    Of layers with the same work before them the last is taken: a convolution's activation.
    """
    last = {work: k for k, work in enumerate(before) if 0 < work < total}
    works = list(last)
    if len(works) > most - 1:
        goals = [total * k / most for k in range(1, most)]
        works = list(dict.fromkeys(min(works, key=lambda w: abs(w - goal)) for goal in goals))
    return [0, *(last[work] for work in sorted(works))]


@dataclass(frozen=True)
class _Sample:
    """Examples with their targets, and how they are augmented."""

    x: Tensor
    y: Any
    augmentation: Augmentation
    n_views: int
    loss: Loss
    seed: int

    def with_targets(self, network: nn.Module) -> _Sample:
        if self.y is not None:
            self._check_targets(network)
            return self
        if self.loss is not multinomial:
            raise AuguryError(
                "y is required: the network's own predictions serve as targets for cross-entropy "
                "alone"
            )
        return replace(self, y=_outputs(network, self.x).argmax(-1))

    def _check_targets(self, network: nn.Module) -> None:
        """Raise unless there is a target for each example, and for cross-entropy a class of it."""
        check_targets(self.y, len(self.x))
        if self.loss is not multinomial or self.y is None or self.y.is_floating_point():
            return
        classes = _outputs(network, self.x).shape[-1]
        odd = self.y[(self.y < 0) | (self.y >= classes)]
        if len(odd):
            raise AuguryError(
                f"y must be classes from 0 to {classes - 1}, the network's outputs, got "
                f"{int(odd[0])}"
            )

    def choices(self, layers: list[str], groups: Sequence[int]) -> Iterator[AveragingChoice]:
        """Yield the ways to compute the loss, without their measurements: all views first."""
        count, drawn = self._asked(self.n_views)

        def choice(layer: str | None, order: int, groups: int, n: int, random: bool) -> Any:
            return AveragingChoice(layer, order, groups, n, random, 0.0, 0.0, 0.0)

        yield choice(None, 0, count, count, drawn)
        yield choice(None, 0, 0, 0, False)
        yield choice(None, 0, 1, 1, True)
        fewer = dict(self._asked(self.n_views >> k) for k in range(1, self.n_views.bit_length()))
        for k in sorted(fewer):
            if 1 < k < count:
                yield choice(None, 0, k, k, fewer[k])
        sizes = [g for g in dict.fromkeys(groups) if 0 < g < count and count % g == 0] or [1]
        for layer, order, size in itertools.product(layers if count > 1 else [], (1, 2), sizes):
            yield choice(layer, order, size, count, drawn)

    def _asked(self, n_views: int) -> tuple[int, bool]:
        """Return how many views to ask for, at most so many, and whether they are drawn.

        A rule may have fewer views than it is asked for, and asked for these, that of a mixture
        may have fewer again. So the number is one of which the rule has exactly as many; if there
        is none, all `n_views` are drawn.
        """
        asked = n_views
        while (rule := self.augmentation.nodes(asked)) is not None:
            if len(rule.weights) == asked:
                return asked, False
            asked = len(rule.weights)
        return n_views, True

    def loss_of(self, network: nn.Module, choice: AveragingChoice) -> Tensor:
        """Return the mean loss of the sample in one training step."""
        if choice.layer is not None:
            averaging = self._averaging(choice, directions=1 if choice.order == 2 else None)
            return averaging.loss(network, self.x, self.y, self.loss, seed=self.seed)
        return self._plain(network, *self._views(choice))

    def errors(self, network: nn.Module, choices: list[AveragingChoice]) -> list[float]:
        """Return the error of each choice's gradient; the first choice is full augmentation."""
        full = gradient(network, self.loss_of(network, choices[0]))
        steps = choices[0].n_views
        distances = [0.0]
        for choice in choices[1:]:
            distances.append(distance(self._mean_gradient(network, choice, steps), full))
        scale = next(d for c, d in zip(choices, distances, strict=True) if c.n_views == 0)
        # Without a scale the augmentation changes nothing, and so does each approximation.
        return [d / scale if scale else 0.0 for d in distances]

    def _mean_gradient(
        self, network: nn.Module, choice: AveragingChoice, steps: int
    ) -> list[Tensor]:
        """Return the gradient in expectation: with random views, its mean over so many steps.

        Averages at a layer are of the same views as full augmentation, and need one step.
        """
        if choice.layer is not None:
            views, weights = self._views(choice)
            averaging = self._averaging(choice, directions=None)
            losses = averaging.losses_of(network, views, self.y, self.loss, weights=weights)
            return gradient(network, losses.mean())
        if not choice.random:
            return gradient(network, self.loss_of(network, choice))
        total: list[Tensor] | None = None
        for step in range(1, steps + 1):
            found = gradient(network, self._plain(network, *self._views(choice, step)))
            total = found if total is None else [a + b for a, b in zip(total, found, strict=True)]
        return [part / steps for part in total or []]

    def _plain(self, network: nn.Module, views: Tensor, weights: Tensor) -> Tensor:
        y = self.y.repeat(len(views), *[1] * (self.y.dim() - 1))
        each = self.loss(_outputs(network, views.flatten(0, 1)), y)
        return (weights.to(each) @ each.unflatten(0, views.shape[:2])).mean()

    def _averaging(self, choice: AveragingChoice, directions: int | None) -> Averaging:
        assert choice.layer is not None
        return Averaging(
            self.augmentation,
            choice.layer,
            choice.n_views,
            order=choice.order,
            groups=choice.groups,
            directions=directions,
            rule=not choice.random,
        )

    def _views(self, choice: AveragingChoice, step: int = 0) -> tuple[Tensor, Tensor]:
        if choice.n_views == 0:
            return self.x.unsqueeze(0), self.x.new_ones(1)
        rng = Rng(self.seed + step, torch.arange(len(self.x), device=self.x.device))
        return views_of(self.augmentation, self.x, choice.n_views, rng, not choice.random)


def _outputs(network: nn.Module, x: Tensor) -> Tensor:
    output = network(x)
    if not isinstance(output, Tensor):
        raise AuguryError(f"the network returns {kind_of(output)}, not a tensor")
    return output
