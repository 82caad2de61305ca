"""Where in a network to average: each layer's cost and error, measured on a sample."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import Augmentation, parse
from augury.networks.averaging import Averaging
from augury.networks.averaging.average import LossLike
from augury.networks.averaging.views import views_of
from augury.networks.invariance import measure_invariance
from augury.networks.layers.find import unwrapped
from augury.networks.layers.paths import cut_at, cuts
from augury.networks.planning.timing import flops, in_mode, seconds, step
from augury.objectives import Loss, any_loss, multinomial
from augury.results.averaging_plan import AveragingChoice, AveragingPlan, LayerCost, least_error


def plan_averaging(
    network: nn.Module,
    x: Tensor,
    augmentation: Augmentation | str,
    y: Tensor | None = None,
    *,
    n_views: int = 16,
    saving: float = 0.5,
    layers: Sequence[str] | None = None,
    groups: Sequence[int] = (1, 4),
    loss: LossLike = multinomial,
    repeats: int = 5,
    seed: int = 0,
) -> AveragingPlan:
    """Measure averaging at each layer of a network, and recommend one for a wanted saving.

    Steps (loss and gradient, versions made on the way) are timed in training mode; errors are of
    the loss in eval mode. The network is left as it was. Its loss should be one that training
    meets: a network that has learnt nothing has no error to speak of.

    Parameters
    ----------
    network
        The network, on the device where it will be trained; timed compiled if it is.
    x, y
        A sample as large as a training batch. Without targets, the network's own answers are
        taken for them.
    augmentation
        T, or a spec.
    n_views
        Number of views that are averaged.
    saving
        The share of a full step's time that is to be saved, in (0, 1).
    layers
        Which to measure; by default all that cut the network, the input among them.
    groups
        Numbers of groups to try, see `Averaging`; those that do not divide n are left out.
    loss
        As for `Averaging.loss`.
    repeats
        Timed runs, of which the median is taken.
    seed
        Of versions that are drawn.

    Examples
    --------
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    >>> x = torch.rand(8, 1, 8, 8)
    >>> found = plan_averaging(network, x, "rotation(15)", n_views=4, repeats=1)
    >>> found.layer in ("input", "0", "1", "2", "3")
    True
    """
    if not 0 < saving < 1:
        raise AuguryError(f"saving is a share of the time between 0 and 1, not {saving}")
    if n_views < 2:
        raise AuguryError(f"averaging needs 2 views or more, not n_views={n_views}")
    n, given, inner = n_views, parse(augmentation), unwrapped(network)
    names = list(layers) if layers is not None else cuts(inner, x)
    sample = _Sample(x, y, given, n, any_loss(loss), seed)
    count = len(sample.versions(n)[1])  # a finite family may have fewer
    sizes = [g for g in dict.fromkeys(groups) if 0 < g < count and count % g == n % g == 0] or [1]
    with in_mode(inner, False), torch.no_grad():
        sample = sample.with_targets(inner)
        places = _places(inner, names, sample, repeats)
        error, fewer_error = sample.errors(inner, names, sizes)
    with in_mode(inner, True), torch.enable_grad():
        runs: dict[Any, Any] = {
            key: step(inner, sample.averaged(network, *key)) for key in error
        } | {k: step(inner, sample.plain(network, k)) for k in {n, 1, *fewer_error}}
        took = seconds(runs, x.device, repeats)
    full = took[n]
    choices = [
        AveragingChoice(*key, took[key], took[key] / full, off) for key, off in error.items()
    ]
    fewer = [
        AveragingChoice("", 0, k, took[k], took[k] / full, off) for k, off in fewer_error.items()
    ]
    fits = [c for c in choices if c.share <= 1 - saving]
    return AveragingPlan(
        places=tuple(places),
        choices=tuple(choices),
        best=min(fits, key=least_error) if fits else min(choices, key=lambda c: c.step),
        fewer=tuple(fewer),
        saving=saving,
        augmentation=repr(given),
        n_views=n,
        examples=len(x),
        full_step=full,
        single_step=took[1],
        device=str(x.device),
    )


def _places(network: nn.Module, names: list[str], sample: _Sample, repeats: int) -> list[LayerCost]:
    x = sample.x
    found = measure_invariance(
        network, x, sample.augmentation, layers=names, n_views=sample.n, seed=sample.seed
    )
    places = []
    for name in names:
        cut = cut_at(network, name, x)
        features = cut.lower(x)
        halves = {
            "before": lambda cut=cut: cut.lower(x),
            "after": lambda cut=cut, features=features: cut.upper(features, x),
        }
        work = {half: flops(run) // len(x) for half, run in halves.items()}
        took = seconds(halves, x.device, repeats)
        moved = found[name, repr(sample.augmentation)].relative
        places.append(
            LayerCost(name, work["before"], work["after"], took["before"], took["after"], moved)
        )
    return places


@dataclass(frozen=True)
class _Sample:
    """Examples, their versions, and what to make of them."""

    x: Tensor
    y: Any
    augmentation: Augmentation
    n: int
    loss: Loss
    seed: int

    def with_targets(self, network: nn.Module) -> _Sample:
        if self.y is not None:
            return self
        if self.loss is not multinomial:
            raise AuguryError("give y: only for cross-entropy can the network's answers be taken")
        return replace(self, y=_outputs(network, self.x).argmax(-1))

    def versions(self, k: int) -> tuple[Tensor, Tensor]:
        rng = Rng(self.seed, torch.arange(len(self.x), device=self.x.device))
        return views_of(self.augmentation, self.x, k, rng)

    def plain(self, network: nn.Module, k: int) -> Callable[[], Tensor]:
        """Make the loss of plain augmentation: k versions through the whole network."""

        def value() -> Tensor:
            versions, weights = self.versions(k)
            y = self.y.repeat(len(versions), *[1] * (self.y.dim() - 1))
            each = self.loss(_outputs(network, versions.flatten(0, 1)), y)
            return (weights.to(each) @ each.unflatten(0, versions.shape[:2])).mean()

        return value

    def averaged(
        self, network: nn.Module, layer: str, order: int, group: int
    ) -> Callable[[], Tensor]:
        """Make an averaged loss; one random direction has the second order's expectation."""
        directions = 1 if order == 2 else None
        how = Averaging(
            self.augmentation, layer, self.n, order=order, groups=group, directions=directions
        )
        return lambda: how.loss(network, self.x, self.y, self.loss, seed=self.seed)

    def errors(
        self, network: nn.Module, names: list[str], groups: list[int]
    ) -> tuple[dict[tuple[str, int, int], float], dict[int, float]]:
        """Give the error of each way of averaging, and of fewer versions, over that of none."""
        versions, weights = self.versions(self.n)
        exact = self._exact(network, versions, weights)
        scale = float((exact - self.loss(_outputs(network, self.x), self.y)).abs().mean())

        def off(value: Tensor) -> float:
            return float((exact - value).abs().mean()) / scale if scale > 0 else 0.0

        found = {}
        for name, order, group in itertools.product(names, (1, 2), groups):
            how = Averaging(self.augmentation, name, self.n, order=order, groups=group)
            value = how.losses_of(network, versions, self.y, self.loss, weights=weights)
            found[name, order, group] = off(value)
        halves = {self.n >> k for k in range(1, self.n.bit_length())}
        fewer = {k: off(self._exact(network, *self.versions(k))) for k in sorted(halves - {0})}
        return found, fewer

    def _exact(self, network: nn.Module, versions: Tensor, weights: Tensor) -> Tensor:
        each = [self.loss(_outputs(network, version), self.y) for version in versions]
        return weights.to(each[0]) @ torch.stack(each)


def _outputs(network: nn.Module, x: Tensor) -> Tensor:
    output = network(x)
    if not isinstance(output, Tensor):
        raise AuguryError(f"the network gives a {type(output).__name__}, not a tensor")
    return output
