"""Feature averaging at a layer of a network (Section 5.3 of the paper)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from augury._base.devices import HALF_FLOATS
from augury._base.errors import AuguryError
from augury._base.given import as_index, as_whole, check_targets
from augury._base.rng import Rng
from augury._base.text import shown
from augury.augmentations import Augmentation, parse
from augury.features.orbit import Orbit
from augury.networks.averaging.head import Rest, first, second, to_features
from augury.networks.averaging.loss import (
    LossLike,
    TrainingLoss,
    check_curvature,
    check_floats,
    check_training,
)
from augury.networks.averaging.sketch import Sketch, grouped
from augury.networks.averaging.views import mean_view, need_seed, rule_of, views_of
from augury.networks.layers.cut import Changed
from augury.networks.layers.find import INPUT
from augury.networks.layers.paths import cut_at, forget
from augury.objectives import any_loss, multinomial
from augury.objectives.objectives import Curvature


@dataclass(frozen=True)
class Averaging(TrainingLoss):
    """Train on n views of each example in less time: average their features at a layer.

    With φ the network up to the layer, f the rest of it, ψ = E φ(t) and Δ = φ(t) − ψ, the loss of
    an example is

        l(f(ψ); y)                       order 1,
        l(f(ψ); y) + ½ E[Δᵀ∇²l Δ]        order 2,

    instead of E l(f(φ(t)); y). It costs n passes up to the layer and one pass of the rest; the
    second order adds a Jacobian-vector product through the rest for each of its `directions`.

    Averaging all views into one at an early layer often costs accuracy; averages of a few
    neighbouring views (`groups`) rarely do. `plan_averaging` measures this on a network.

    Parameters
    ----------
    augmentation
        T, as an augmentation or a spec such as ``"rotation(15)"``. It is applied to inputs as the
        network takes them; pixels must be in [0, 1] if it clips.
    layer
        The layer's path, as in ``network.named_modules()``, or ``"input"``.
    n_views
        Number of views of each example.
    order
        1 or 2.
    curvature
        For the second order: ``"gauss-newton"`` (JᵀlʹʹJ) or ``"hessian"``, which adds the
        curvature of f itself; they agree for a head of ReLUs and differ for others.
    directions
        For the second order: None uses all n deviations; a number uses that many random
        combinations of them, with the same expectation at a fraction of the cost.
    groups
        Number of averages: each is taken over n_views / groups neighbouring views (in the rule's
        order), and the rest of the network runs once for each. 1 is the paper's method; n_views
        is full augmentation.
    rule
        Use the augmentation's quadrature rule if it has one, the same maps at each step;
        otherwise each example gets views of its own, drawn anew with each `seed`.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    >>> x, y = torch.rand(8, 1, 8, 8), torch.arange(8)
    >>> averaging = Averaging("rotation(15)", "input", n_views=16, groups=4)
    >>> averaging.loss(network, x, y).backward()
    """

    augmentation: Augmentation | str
    layer: str
    n_views: int = 16
    _: KW_ONLY
    order: int = 1
    curvature: Curvature = "gauss-newton"
    directions: int | None = None
    groups: int = 1
    rule: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.layer, str):
            raise AuguryError(
                "layer must be a layer's path, as in network.named_modules(), or 'input', not "
                f"{shown(self.layer)}"
            )
        for name in ("n_views", "order", "groups", "directions"):
            value = getattr(self, name)
            if value is not None or name != "directions":
                as_whole(name, value)
        if self.n_views < 2:
            raise AuguryError(f"averaging needs at least 2 views, got n_views={self.n_views}")
        if self.order not in (1, 2):
            raise AuguryError(f"order must be 1 or 2, not {self.order}")
        if self.directions is not None and self.directions < 1:
            raise AuguryError(
                f"directions must be 1 or more, or None for all, not {self.directions}"
            )
        if self.groups < 1 or self.n_views % self.groups:
            raise AuguryError(f"groups must divide the {self.n_views} views, got {self.groups}")
        check_curvature(self.curvature)
        object.__setattr__(self, "augmentation", parse(self.augmentation))

    def losses(
        self,
        network: nn.Module,
        x: Tensor,
        y: Tensor,
        loss: LossLike = multinomial,
        *,
        seed: int | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        check_floats(x)
        check_training(network)
        augmentation = parse(self.augmentation)
        fixed = self.rule and rule_of(augmentation, self.n_views, x.device) is not None
        chance = not fixed or (self.order == 2 and self.directions is not None)
        rng = _rng(seed, index, x) if chance else None
        mean = None
        if fixed and (self.layer, self.order, self.groups) == (INPUT, 1, 1):
            mean = mean_view(augmentation, x, self.n_views)
        if mean is not None:
            views, weights = mean.unsqueeze(0), x.new_ones(1)
        else:
            views, weights = views_of(augmentation, x, self.n_views, rng, self.rule)
        return self._losses(network, views, weights, x, y, loss, rng)

    def losses_of(
        self,
        network: nn.Module,
        views: Tensor,
        y: Tensor,
        loss: LossLike = multinomial,
        *,
        weights: Tensor | None = None,
        seed: int | None = None,
    ) -> Tensor:
        """Return the loss of each example from given views ``(n, b, *shape)``, in either mode."""
        n = len(views)
        if weights is None:
            check_floats(views)
            weights = torch.full((n,), 1 / n, dtype=views.dtype, device=views.device)
        x = views[0]
        return self._losses(network, views, weights, x, y, loss, _rng(seed, None, x))

    def _losses(self, network: nn.Module, *step: Any) -> Tensor:
        try:
            return self._step(network, *step)
        except Changed:
            forget(network)  # so that the layer is checked again
            return self._step(network, *step)

    def _step(
        self,
        network: nn.Module,
        views: Tensor,
        weights: Tensor,
        x: Tensor,
        y: Tensor,
        loss: LossLike,
        rng: Rng | None,
    ) -> Tensor:
        check_targets(y, len(x))
        cut = cut_at(network, self.layer, x)
        output = cut.lower(_like(views.flatten(0, 1), x))
        features = to_features(output)
        rest = Rest(cut, features is not output, features.dtype)
        if self.order == 2 and features.dtype in HALF_FLOATS:
            features = features.float()  # deviations are small differences
        weights = weights.to(features)
        orbit = Orbit(features.unflatten(0, views.shape[:2]), weights)
        shares = None
        if self.groups > 1:
            if len(views) % self.groups:  # a finite family may have fewer views than n_views
                raise AuguryError(
                    f"groups must divide the {len(views)} views that {self.augmentation} has, got "
                    f"{self.groups}"
                )
            orbit, shares = grouped(orbit, self.groups, spread=self.order == 2)
            x, y = (t.repeat(self.groups, *[1] * (t.dim() - 1)) for t in (x, y))
        if self.order == 1:
            value = first(rest, orbit, x, y, any_loss(loss))
        else:
            if self.directions is not None:
                rng = need_seed(rng, "a combination of directions")
                orbit = Sketch.combined(orbit, self.directions, rng)
            value = second(rest, orbit, x, y, any_loss(loss), self.curvature)
        return value if shares is None else shares.to(value) @ value.view(self.groups, -1)


def _rng(seed: int | None, index: Tensor | None, x: Tensor) -> Rng | None:
    if seed is None:
        return None
    if index is None:
        index = torch.arange(len(x), device=x.device)
    numbers = as_index(index)
    if len(numbers) != len(x):
        raise AuguryError(
            f"index must have one number for each of the {len(x)} examples, got {len(numbers)}"
        )
    return Rng(seed, numbers.to(x.device))


def _like(views: Tensor, x: Tensor) -> Tensor:
    """Return views with the memory layout of the inputs: channels last, if they are."""
    last = torch.channels_last
    if x.dim() == 4 and x.is_contiguous(memory_format=last) and not x.is_contiguous():
        return views.contiguous(memory_format=last)
    return views
