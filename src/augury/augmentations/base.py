"""What an augmentation is: a probability distribution over maps of an input to itself."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_number, as_whole, check_kind, check_tensor
from augury._base.rng import Rng
from augury._base.text import shown

if TYPE_CHECKING:
    from augury.augmentations.callable import Transform
    from augury.augmentations.tables import Table

Params = Any
"""A tensor, or nested tuples of tensors, each with leading shape (n, b), or (n, 1) if shared."""

DIMENSIONS = {"image": 3, "series": 2, "sound": 2, "vector": 1}
"""The number of dimensions of one example, by its kind."""


class Nodes(NamedTuple):
    """Maps shared by all examples, with weights that sum to one: a quadrature rule."""

    params: Params
    weights: Tensor


class Augmentation(ABC):
    """A probability distribution T over maps of an input to itself.

    Draw, then apply: `draw` returns parameters, `apply` is a pure function of inputs and
    parameters. The inputs of `apply` have shape ``(n or 1, b, *shape)`` for n views of b examples,
    and its result has shape ``(n, b, *shape)``.
    """

    kinds: frozenset[str] = frozenset(DIMENSIONS)
    """The kinds of data that it works on."""

    linear: bool = False
    """Whether `apply` is linear in its input, so that it has an adjoint."""

    size: int | None = None
    """The number of maps of a finite distribution; None if there is no such number."""

    @abstractmethod
    def draw(self, n: int, rng: Rng) -> Params:
        """Draw the parameters of n views of each example of `rng`: leading shape ``(n, b)``."""

    def nodes(self, n: int) -> Nodes | None:
        """Return a rule of at most n shared maps, exact where finite; None if there is no rule."""
        return None

    @abstractmethod
    def apply(self, x: Tensor, params: Params) -> Tensor:
        """Transform ``(n or 1, b, *shape)`` into ``(n, b, *shape)``."""

    def views(self, x: Tensor, n_views: int, rng: Rng) -> Tensor:
        """Return random views of each of the examples x: ``(n_views, b, *shape)``."""
        n_views = _check_views(x, n_views, rng)
        self.check(tuple(x.shape[1:]))
        return self.apply(x.unsqueeze(0), self.draw(n_views, rng))

    def weighted_views(self, x: Tensor, n_views: int, rng: Rng) -> tuple[Tensor, Tensor]:
        """Return views and their weights: by the rule of `nodes` where there is one, else drawn.

        Returns
        -------
        views, weights
            Shapes ``(m, b, *shape)`` and ``(m,)`` with m at most `n_views`.
        """
        n_views = _check_views(x, n_views, rng)
        self.check(tuple(x.shape[1:]))
        rule = self.nodes(n_views)
        if rule is None:
            even = torch.full((n_views,), 1.0 / n_views, dtype=x.dtype, device=x.device)
            return self.views(x, n_views, rng), even
        params = to_device(rule.params, x.device)
        return self.apply(x.unsqueeze(0), params), rule.weights.to(x)

    def __call__(self, image: Any) -> Any:
        """Return one view of an image: a PIL image, an array or a tensor, single or batched.

        This is the one place that reads torch's default generator, for a seed, so that an
        augmentation can stand wherever a transform is expected; `transform` takes a seed instead.
        """
        from augury.augmentations.callable import call

        return call(self, image)

    def transform(self, seed: int = 0, kind: str | None = None) -> Transform:
        """Return a callable with a seed, picklable and safe in `DataLoader` workers."""
        from augury.augmentations.callable import Transform

        return Transform(self, seed, kind)

    def adjoint(self, w: Tensor, params: Params) -> Tensor:
        """Apply the transpose of each shared map to w: ``(m, *shape)`` to ``(n, m, *shape)``.

        It is the vector-Jacobian product of `apply`, so nobody has to write a transpose by hand.
        """
        if not self.linear:
            raise AuguryError(f"{self} is not linear in its input, so it has no adjoint")
        n = _leading(params)
        at = torch.zeros((n, *w.shape), dtype=w.dtype, device=w.device, requires_grad=True)
        with torch.enable_grad():
            out = self.apply(at, params)
        (result,) = torch.autograd.grad(out, at, w.expand_as(out))
        return result

    def at_scale(self, factor: float) -> Augmentation:
        """Return what to apply to images that were shrunk by a factor before they are augmented.

        The views then look like those of the whole images, shrunk after they were augmented. What
        is measured in pixels (blur, sharpness, the grid of `elastic`, the translations of
        `trivial_augment`) is scaled; what is measured in sides, angles or grey levels stays.
        `noise` and `jpeg` stay as they are too: shrinking would average them away, and the
        network that is planned for whole images will see them.
        """
        if not 0 < as_number("factor", factor) <= 1:
            raise AuguryError(f"at_scale({factor}): expected new side / old side, in (0, 1]")
        return self._scaled(factor)

    def _scaled(self, factor: float) -> Augmentation:
        return self

    def at_rate(self, rate: int, level: float) -> Augmentation:
        """Return the same for recordings: transforms of audiomentations are told their rate.

        Parameters
        ----------
        rate
            Samples per second.
        level
            What a value of 1 in the data stands for in the recordings, which are in [-1, 1].
        """
        return self

    def bound(self, table: Table) -> Augmentation:
        """Return the same for rows of a table: families of tables take values from it."""
        return self

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise if inputs of this shape cannot be transformed."""
        if len(shape) not in {DIMENSIONS[kind] for kind in self.kinds}:
            known = (kind for kind, size in DIMENSIONS.items() if size == len(shape))
            kind = " or ".join(known) or f"{len(shape)}-dimensional"
            raise AuguryError(
                f"{self} works on {' or '.join(sorted(self.kinds))} data, but this is {kind} data "
                f"(each example has shape {shape}); choose an augmentation for {kind} data"
            )
        if 0 in shape:
            raise AuguryError(f"{self} needs non-empty examples, got shape {shape}")

    def to(self, library: str, image_shape: tuple[int, ...] | None = None) -> str:
        """Return this augmentation as code of another library: see `augury.export`."""
        from augury import export  # by its public name: adapters lie above this layer

        return export(self, to=library, image_shape=image_shape)

    @property
    def plain(self) -> Augmentation:
        """The augmentation itself: what a policy chose, or a weight alone stands for."""
        return self

    __array_ufunc__ = None  # so that NumPy's numbers leave ``0.5 * a`` to __rmul__

    def __rshift__(self, then: Any) -> Augmentation:
        from augury.augmentations.combine import Then

        return Then.of(self, then)

    def __rrshift__(self, first: Any) -> Augmentation:
        from augury.augmentations.combine import Then

        return Then.of(first, self)

    def __or__(self, other: Any) -> Augmentation:
        from augury.augmentations.combine import Mixture

        return Mixture.of(self, other)

    def __ror__(self, other: Any) -> Augmentation:
        from augury.augmentations.combine import Mixture

        return Mixture.of(other, self)

    def __rmul__(self, weight: float) -> Any:
        from augury.augmentations.combine import Weighted

        return Weighted(weight, self)

    def __mul__(self, weight: Any) -> Any:
        raise AuguryError(f"a weight comes first, as in 0.5*a: got {self} * {shown(weight)}")

    def __pow__(self, times: int) -> Augmentation:
        from augury.augmentations.combine import Power

        return Power(self, times)


class Family(Augmentation):
    """A named family with numbers as parameters: a frozen dataclass whose repr is its spec."""

    ladder: ClassVar[tuple[tuple[float, ...], ...]] = ()
    """Settings from mild to strong; empty for a family that has no strength."""

    strongest: ClassVar[float] = math.inf
    """The magnitude beyond which there is nothing stronger."""

    def __new__(cls, *values: Any, **named: Any) -> Self:
        """Raise if something else is given where a family takes a number."""
        fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
        given = {**{f.name: v for f, v in zip(fields, values, strict=False)}, **named}
        for field in fields:
            value = given.get(field.name, field.default)
            if isinstance(field.default, Real) and not isinstance(value, Real):
                raise AuguryError(f"{cls.__name__} takes a number as {field.name}, got {value!r}")
        return super().__new__(cls)

    @property
    def magnitude(self) -> float | None:
        """How strong this setting is: larger is stronger. None for a family without a ladder.

        A range of factors, as in ``scaling(0.7,1.3)``, is as strong as it is wide; where a smaller
        number is stronger, as in ``resized_crop(0.25)``, the magnitude is its negative.
        """
        if not self.ladder:
            return None
        names = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]  # families are dataclasses
        values = [float(getattr(self, name)) for name in names[: len(self.ladder[0])]]
        if len(values) == 2:
            return values[1] - values[0]
        return values[0] if self.ladder[0] < self.ladder[-1] else -values[0]

    def __repr__(self) -> str:
        shown = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]  # families are dataclasses
            value = getattr(self, field.name)
            if not field.kw_only:
                shown.append(number(value))
            elif value != field.default:
                shown.append(f"{field.name}={number(value)}")
        return type(self).__name__ + (f"({','.join(shown)})" if shown else "")


def _check_views(x: Any, n_views: Any, rng: Any) -> int:
    """Return the number of views; raise unless views of x can be made."""
    check_tensor(x)
    if not x.is_floating_point():
        raise AuguryError(
            f"views are made of floating-point examples, got {x.dtype}; divide bytes by 255"
        )
    check_kind("rng", rng, Rng, "an Rng, such as augury.Rng(0, torch.arange(len(x)))")
    return as_whole("n_views", n_views, 1)


def number(value: float | bool | int) -> str:
    """Write a number as it was given: ``15``, ``0.7``, ``2.0``, ``false``."""
    return str(value).lower()


def require(name: str, condition: bool, expected: str, *values: float) -> None:
    """Raise one clear line if the parameters of a family are not `expected`."""
    if not condition or not all(map(_finite, values)):
        got = ",".join(number(v) for v in values)
        raise AuguryError(f"{name}({got}): expected {expected}")


def _finite(value: float) -> bool:
    return abs(value) <= 3.4e38  # what a float32 holds; NaN compares as False


def gauss_legendre(n: int, low: float, high: float) -> Nodes | None:
    """Return the n-point Gauss-Legendre rule for the uniform law on [low, high], as (n, 1) params.

    The only node of a rule of one is the mean of the parameter, for a rotation no change at all;
    so there is none for n = 1, and a view is drawn.
    """
    if n < 2:
        return None
    points, weights = np.polynomial.legendre.leggauss(n)
    params = low + (high - low) * (torch.from_numpy(points) + 1) / 2
    return Nodes(params.unsqueeze(1), torch.from_numpy(weights) / 2)


def even_spacing(n: int, low: float, high: float) -> Nodes | None:
    """Return n evenly spaced nodes from `low` on: the best rule for a parameter with that period.

    None for n = 1, as for `gauss_legendre`.
    """
    if n < 2:
        return None
    params = low + (high - low) * torch.arange(n, dtype=torch.float64) / n
    return Nodes(params.unsqueeze(1), torch.full((n,), 1 / n, dtype=torch.float64))


def golden_points(n: int, d: int) -> Nodes | None:
    """Return n points that fill the unit cube evenly, for families of d parameters, d ≥ 2.

    Along the first axis they are evenly spaced. Along the others point i stands at the fractional
    part of (i + ½) g^−k, with g the golden ratio for d = 2 and its generalisation g^d = g + 1 for
    more, whose multiples leave no large gaps (Roberts, 2018). None for n = 1, as for
    `gauss_legendre`.

    Returns
    -------
    rule
        Params ``(n, 1, d)`` in (0, 1), with equal weights.
    """
    if n < 2:
        return None
    ratio = 2.0
    for _ in range(60):  # a fixed point of g = (g + 1)^(1/d)
        ratio = (ratio + 1) ** (1 / d)
    i = torch.arange(n, dtype=torch.float64).unsqueeze(1) + 0.5
    steps = ratio ** -torch.arange(1, d, dtype=torch.float64)
    points = torch.cat([i / n, (i * steps).remainder(1)], dim=1)
    return Nodes(points.unsqueeze(1), torch.full((n,), 1 / n, dtype=torch.float64))


def matrices(
    augmentation: Augmentation,
    shape: tuple[int, ...],
    params: Params,
    like: Tensor,
    rows: slice = slice(None),
) -> Tensor:
    """Return shared linear maps as matrices whose rows are views of single values: ``(n, p, p)``.

    Parameters
    ----------
    augmentation
        One that is linear in its input.
    shape
        Of one example, with p values.
    params
        Of n shared maps.
    like
        Decides the type and the device.
    rows
        Which rows to compute.
    """
    unit = torch.eye(math.prod(shape), dtype=like.dtype, device=like.device)[rows]
    return augmentation.apply(unit.view(1, -1, *shape), params).flatten(2)


def to_device(params: Params, device: torch.device) -> Params:
    """Move a tree of parameters."""
    if isinstance(params, tuple):
        return tuple(to_device(p, device) for p in params)
    return params.to(device)


def flat(x: Tensor, n: int) -> Tensor:
    """Bring ``(n or 1, b, ...)`` to ``(n * b, ...)``, for operators that take one batch."""
    return x.expand(n, *x.shape[1:]).flatten(0, 1)


def along(params: Tensor, x: Tensor) -> Tensor:
    """Bring parameters ``(n, b or 1)`` to x's type and number of dimensions, to broadcast."""
    return params.to(x.dtype).reshape(*params.shape, *[1] * (x.dim() - params.dim()))


def _leading(params: Params) -> int:
    while isinstance(params, tuple):
        params = params[0]
    return params.shape[0]
