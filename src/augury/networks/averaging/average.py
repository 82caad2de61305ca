"""Feature averaging at a layer of a network (Section 5.3 of the paper)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor, nn

from augury._base.devices import HALF_FLOATS
from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import Augmentation, Nodes, parse
from augury.augmentations.base import to_device
from augury.features.orbit import Orbit
from augury.networks.averaging.head import Rest, first, second, to_features
from augury.networks.averaging.layers import INPUT, unwrapped
from augury.networks.averaging.probe import cut_at
from augury.networks.averaging.sketch import Sketch, grouped
from augury.objectives import any_loss, multinomial
from augury.objectives.objectives import Curvature

LossLike = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Averaging:
    """Train on n versions of each example for less: average their features at a layer.

    With φ the network up to the layer, f the rest of it, ψ = E φ(t) and Δ = φ(t) − ψ, the loss of
    an example is

        l(f(ψ); y)                       order 1,
        l(f(ψ); y) + ½ E[Δᵀ∇²l Δ]        order 2,

    in place of E l(f(φ(t)); y). It costs n passes up to the layer and one pass of the rest; the
    second order adds a Jacobian-vector product through the rest for each of its `directions`.

    Parameters
    ----------
    augmentation
        T, as an augmentation or a spec such as ``"rotation(15)"``. It works on inputs as the
        network gets them; pixels in [0, 1] where it clips.
    layer
        The layer's path, as in ``model.named_modules()``, or ``"input"``.
    n
        How many versions of each example.
    order
        1 or 2.
    curvature
        Of the second order: ``"gauss-newton"`` (JᵀlʹʹJ) or ``"hessian"``, which adds the
        curvature of f itself; the same for a head of ReLUs, different for others.
    directions
        Of the second order: None takes all n deviations; a number takes so many random
        combinations of them, which have the same expectation at a fraction of the cost.
    groups
        How many averages are taken: n / groups neighbours (by the rule's order) make each, and
        the rest of the network runs once for each. 1 is the paper's; n is full augmentation.
    rule
        Use the augmentation's own quadrature where it has one, the same maps at each step;
        otherwise each example gets versions of its own, drawn anew with each `seed`.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    >>> x, y = torch.rand(8, 1, 8, 8), torch.arange(8)
    >>> averaging = Averaging("rotation(15)", "1", n=16)
    >>> averaging.loss(model, x, y).backward()
    """

    augmentation: Augmentation | str
    layer: str
    n: int = 16
    _: KW_ONLY
    order: int = 1
    curvature: Curvature = "gauss-newton"
    directions: int | None = None
    groups: int = 1
    rule: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.layer, str):
            raise AuguryError(
                "layer must be a layer's path, as in model.named_modules(), or 'input', not "
                f"{self.layer!r}"
            )
        if self.n < 2:
            raise AuguryError(f"averaging needs 2 versions or more, not n={self.n}")
        if self.order not in (1, 2):
            raise AuguryError(f"order must be 1 or 2, not {self.order}")
        if self.directions is not None and self.directions < 1:
            raise AuguryError(
                f"directions must be 1 or more, or None for all, not {self.directions}"
            )
        if self.groups < 1 or self.n % self.groups:
            raise AuguryError(
                f"groups must share the {self.n} versions evenly, and {self.groups} do not"
            )
        check_curvature(self.curvature)
        object.__setattr__(self, "augmentation", parse(self.augmentation))

    def loss(
        self,
        model: nn.Module,
        x: Tensor,
        y: Tensor,
        loss: LossLike = multinomial,
        *,
        seed: int | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Give the mean loss of a batch, to be differentiated; the arguments are `losses`'."""
        return self.losses(model, x, y, loss, seed=seed, index=index).mean()

    def losses(
        self,
        model: nn.Module,
        x: Tensor,
        y: Tensor,
        loss: LossLike = multinomial,
        *,
        seed: int | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Give the loss of each example of a batch: ``(b,)``.

        Parameters
        ----------
        model
            The network, in training mode. A compiled one runs compiled.
        x, y
            Inputs ``(b, *shape)`` and targets.
        loss
            From outputs and targets to one number for each example: cross-entropy by default, or
            a function of your own; it must not reduce over examples (``reduction="none"``).
        seed
            For versions that are drawn: another at each step, for example the step's number.
        index
            The examples' numbers in the data ``(b,)``, so that a draw depends on the seed and the
            example alone; their places in the batch by default.
        """
        check_floats(x)
        augmentation = parse(self.augmentation)
        fixed = self.rule and _rule(augmentation, self.n, x.device) is not None
        chance = not fixed or (self.order == 2 and self.directions is not None)
        rng = _rng(seed, index, x) if chance else None
        mean = None
        if fixed and (self.layer, self.order, self.groups) == (INPUT, 1, 1):
            mean = _mean_version(augmentation, x, self.n)
        if mean is not None:
            versions, weights = mean.unsqueeze(0), x.new_ones(1)
        else:
            versions, weights = versions_of(augmentation, x, self.n, rng, self.rule)
        return self._losses(model, versions, weights, x, y, loss, rng)

    def losses_of(
        self,
        model: nn.Module,
        versions: Tensor,
        y: Tensor,
        loss: LossLike = multinomial,
        *,
        weights: Tensor | None = None,
        seed: int | None = None,
    ) -> Tensor:
        """Give the loss of each example from versions ``(n, b, *shape)`` made elsewhere."""
        n = len(versions)
        if weights is None:
            check_floats(versions)
            weights = torch.full((n,), 1 / n, dtype=versions.dtype, device=versions.device)
        x = versions[0]
        return self._losses(model, versions, weights, x, y, loss, _rng(seed, None, x))

    def _losses(
        self,
        model: nn.Module,
        versions: Tensor,
        weights: Tensor,
        x: Tensor,
        y: Tensor,
        loss: LossLike,
        rng: Rng | None,
    ) -> Tensor:
        check_training(model)
        cut = cut_at(model, self.layer, x)
        output = cut.lower(_like(versions.flatten(0, 1), x))
        features = to_features(output)
        rest = Rest(cut, features is not output, features.dtype)
        if self.order == 2 and features.dtype in HALF_FLOATS:
            features = features.float()  # deviations are small differences
        weights = weights.to(features)
        orbit = Orbit(features.unflatten(0, versions.shape[:2]), weights)
        shares = None
        if self.groups > 1:
            if len(versions) % self.groups:  # a finite family may have fewer versions than n
                raise AuguryError(
                    f"{self.augmentation} has {len(versions)} versions, and {self.groups} groups "
                    "cannot share them evenly; choose other groups"
                )
            orbit, shares = grouped(orbit, self.groups, spread=self.order == 2)
            x, y = (t.repeat(self.groups, *[1] * (t.dim() - 1)) for t in (x, y))
        if self.order == 1:
            value = first(rest, orbit, x, y, any_loss(loss))
        else:
            if self.directions is not None:
                if rng is None:
                    raise AuguryError(_SEED.format(what="a combination of directions"))
                orbit = Sketch.combined(orbit, self.directions, rng)
            value = second(rest, orbit, x, y, any_loss(loss), self.curvature)
        return value if shares is None else shares.to(value) @ value.view(self.groups, -1)


_SEED = "{what} is drawn at random: give seed=, another at each step (the step's number will do)"


def versions_of(
    augmentation: Augmentation, x: Tensor, n: int, rng: Rng | None, rule: bool = True
) -> tuple[Tensor, Tensor]:
    """Give versions ``(n, b, *shape)`` and weights ``(n,)``, by a rule if wanted and known.

    The rule is kept on the device, so that a training step neither makes nor moves it.
    """
    nodes = _rule(augmentation, n, x.device) if rule else None
    augmentation.check(tuple(x.shape[1:]))
    if nodes is not None:
        return augmentation.apply(x.unsqueeze(0), nodes.params), nodes.weights.to(x)
    if rng is None:
        raise AuguryError(_SEED.format(what=augmentation))
    weights = torch.full((n,), 1 / n, dtype=x.dtype, device=x.device)
    return augmentation.views(x, n, rng), weights


@functools.lru_cache(maxsize=64)
def _rule(augmentation: Augmentation, n: int, device: torch.device) -> Nodes | None:
    """Give an augmentation's quadrature on a device, where it has one; kept from step to step."""
    with torch.inference_mode(False):  # it is kept for whoever comes next
        rule = augmentation.nodes(n)
        return rule and Nodes(to_device(rule.params, device), rule.weights.to(device))


def _mean_version(augmentation: Augmentation, x: Tensor, n: int) -> Tensor | None:
    """Give the mean version of small images under a rule of linear maps: it is linear too.

    One product in place of n versions and their mean.
    """
    shape = tuple(x.shape[1:])
    if not augmentation.linear or math.prod(shape) > _SMALL or x.dtype in HALF_FLOATS:
        return None
    augmentation.check(shape)
    matrix = _mean_map(augmentation, n, shape, x.dtype, x.device)
    with torch.autocast(x.device.type, enabled=False):
        return (x.flatten(1) @ matrix).view_as(x)


_SMALL = 1024  # values of an example whose mean version is one product


@functools.lru_cache(maxsize=16)
def _mean_map(
    augmentation: Augmentation,
    n: int,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Give E t over a rule as a matrix: its rows are the mean versions of single values."""
    size = math.prod(shape)
    with torch.inference_mode(False), torch.no_grad():
        unit = torch.eye(size, dtype=dtype, device=device).view(size, *shape)
        versions, weights = versions_of(augmentation, unit, n, None)
        return torch.tensordot(weights, versions, 1).flatten(1)


def check_floats(x: Tensor) -> None:
    """Raise if a batch is not of real numbers, as pixels read from files are not."""
    if not x.is_floating_point():
        raise AuguryError(
            f"the batch must be of floats, not {x.dtype}; give pixels as x.float() / 255"
        )


def check_curvature(curvature: str) -> None:
    """Raise if it is not one that the second order knows."""
    if curvature not in ("gauss-newton", "hessian"):
        raise AuguryError(f"curvature must be 'gauss-newton' or 'hessian', not {curvature!r}")


def check_training(model: nn.Module) -> None:
    """Raise if a network that is to be trained is in eval mode."""
    if torch.is_grad_enabled() and not unwrapped(model).training:
        raise AuguryError(
            "the network is in eval mode, where batch norm and dropout stand still: call "
            "model.train() to train it, or use torch.no_grad() to measure"
        )


def _rng(seed: int | None, index: Tensor | None, x: Tensor) -> Rng | None:
    if seed is None:
        return None
    if index is None:
        index = torch.arange(len(x), device=x.device)
    return Rng(seed, index.to(x.device))


def _like(versions: Tensor, x: Tensor) -> Tensor:
    """Lay versions out in memory as the inputs are: channels last, where they were."""
    last = torch.channels_last
    if x.dim() == 4 and x.is_contiguous(memory_format=last) and not x.is_contiguous():
        return versions.contiguous(memory_format=last)
    return versions
