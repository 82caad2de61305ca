"""Tangent propagation (Simard et al., 1992): averaging at the input with analytic tangent vectors.

Near the mean θ̄ of its parameters, an augmentation moves an input along a line:
t_θ(x) ≈ t_θ̄(x) + Σ_j (θ − θ̄)_j τ_j, with tangent vectors τ_j = ∂t_θ(x)/∂θ_j. So ψ ≈ t_θ̄(x), the
input itself where the parameters are centred on no change, and E[ΔΔᵀ] ≈ τ Cov(θ) τᵀ: the
second-order term of Section 5.3 at layer "input" needs one direction for each parameter, and no
views at all.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import Augmentation, Params, Power, Then, parse
from augury.augmentations.geometry import Affine, sample
from augury.networks.averaging.head import Rest, second
from augury.networks.averaging.loss import (
    LossLike,
    TrainingLoss,
    check_curvature,
    check_floats,
    check_training,
)
from augury.networks.averaging.sketch import Sketch
from augury.networks.layers.find import INPUT
from augury.networks.layers.paths import cut_at
from augury.objectives import any_loss, multinomial
from augury.objectives.derivatives import jvp
from augury.objectives.objectives import Curvature

_DRAWS = 1 << 15  # for the mean and the variance of parameters that have no rule
_SNAP = 1e-4  # pixels: nearer to a pixel's centre than this is at it


@dataclass(frozen=True)
class TangentPropagation(TrainingLoss):
    """Train on l(f(x)) + ½ Σ_j Var(θ_j) τ_jᵀ∇²l τ_j; use it like an `Averaging`.

    It costs one pass and one Jacobian-vector product for each parameter of the augmentation.

    Parameters
    ----------
    augmentation
        One whose maps are a smooth function of their parameters: a warp, a blur, a brightness or
        contrast change, or a sequence ``a >> b`` of these.
    curvature
        As in `Averaging`.

    Examples
    --------
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> x, y = torch.rand(8, 1, 8, 8), torch.arange(8)
    >>> TangentPropagation("rotation(15)").loss(network, x, y).backward()
    """

    augmentation: Augmentation | str
    curvature: Curvature = "gauss-newton"

    def __post_init__(self) -> None:
        check_curvature(self.curvature)
        object.__setattr__(self, "augmentation", parse(self.augmentation))

    def losses(
        self,
        network: nn.Module,
        x: Tensor,
        y: Tensor,
        loss: LossLike = multinomial,
        *,
        seed: int | None = None,  # nothing is drawn here
        index: Tensor | None = None,  # likewise
    ) -> Tensor:
        check_floats(x)
        check_training(network)
        cut = cut_at(network, INPUT, x)
        sketch = tangent_sketch(parse(self.augmentation), x)
        return second(Rest(cut, False, x.dtype), sketch, x, y, any_loss(loss), self.curvature)


def tangent_sketch(augmentation: Augmentation, x: Tensor) -> Sketch:
    """Return t_θ̄(x) and the tangent vectors, each times the spread of its parameter."""
    augmentation.check(tuple(x.shape[1:]))
    mean, directions = _moments(augmentation)
    mean, directions = pytree.tree_map(lambda p: p.to(x), (mean, directions))
    still = torch.zeros_like(x).unsqueeze(0)
    pushed = [_push(augmentation, x.unsqueeze(0), still, mean, along) for along in directions]
    tangents = torch.cat([tangent for _, tangent in pushed])
    if not tangents.any() and not _moves(augmentation, x, mean, directions):
        raise _rough(augmentation)
    weights = torch.ones(len(tangents), dtype=x.dtype, device=x.device)
    return Sketch(pushed[0][0].squeeze(0), tangents, weights)


def _moves(augmentation: Augmentation, x: Tensor, mean: Params, directions: list[Params]) -> bool:
    """Return whether some input of x's shape has a tangent vector: those of blank images are 0."""
    some = torch.rand(x.shape[1:], generator=torch.Generator().manual_seed(0)).to(x)[None, None]
    still = torch.zeros_like(some)
    return any(_push(augmentation, some, still, mean, along)[1].any() for along in directions)


@functools.lru_cache(maxsize=64)
def _moments(augmentation: Augmentation) -> tuple[Params, list[Params]]:
    """Return the mean of the parameters, and the columns of a square root of their covariance."""
    if isinstance(augmentation, Then | Power):
        parts = [_moments(part) for part in augmentation.parts]
        mean = tuple(m for m, _ in parts)
        zeros = [pytree.tree_map(torch.zeros_like, m) for m in mean]
        return mean, [
            (*zeros[:k], along, *zeros[k + 1 :])
            for k, (_, columns) in enumerate(parts)
            for along in columns
        ]
    rule = augmentation.nodes(8)
    if rule is not None and isinstance(rule.params, Tensor) and rule.params[0].numel() > 1:
        rule = None  # of several parameters: points that fill a cube have no exact moments
    if rule is None:
        params = augmentation.draw(_DRAWS, Rng(0, torch.zeros(1, dtype=torch.int64)))
        weights = torch.full((_DRAWS,), 1 / _DRAWS, dtype=torch.float64)
    else:
        params, weights = rule
    if not isinstance(params, Tensor) or not params.is_floating_point():
        raise _rough(augmentation)
    flat = params.double().flatten(1)
    mean = weights @ flat
    if rule is None:  # the mean of the draws is near a round number: take that one
        error = flat.std(0) / _DRAWS**0.5
        step = 10 ** (6 * error).log10().ceil()
        mean = (mean / step).round() * step
    values, vectors = torch.linalg.eigh((weights.unsqueeze(1) * (flat - mean)).mT @ (flat - mean))
    columns = (vectors * values.clamp_min(0).sqrt()).mT
    shape = (1, *params.shape[1:])
    return mean.view(shape), [c.view(shape) for c in columns]


def _rough(augmentation: Augmentation) -> AuguryError:
    return AuguryError(
        f"{augmentation} has no tangent vectors: its maps are not a smooth function of a "
        "parameter; use Averaging with layer 'input' instead"
    )


def _push(
    augmentation: Augmentation, x: Tensor, dx: Tensor, params: Params, dparams: Params
) -> tuple[Tensor, Tensor]:
    """Return t_θ(x) and its derivative as x moves along dx and θ along dθ."""
    if isinstance(augmentation, Then | Power):
        for part, p, dp in zip(augmentation.parts, params, dparams, strict=True):
            x, dx = _push(part, x, dx, p, dp)
        return x, dx
    if isinstance(augmentation, Affine) and x.dim() == 5:
        still = augmentation.apply(x, params)
        return still, augmentation.apply(dx, params) + _flow(augmentation, x, params, dparams)

    def moved(s: Tensor | float) -> Tensor:
        return augmentation.apply(x + s * dx, params + s * dparams)

    scale = torch.zeros((), dtype=x.dtype, device=x.device)
    try:
        return jvp(moved, scale, torch.ones_like(scale))
    except NotImplementedError:  # torch has no forward rule of an operation, such as grid_sample
        step = torch.finfo(x.dtype).eps ** (1 / 3)
        return moved(0.0), (moved(step) - moved(-step)) / (2 * step)


def _flow(warp: Affine, x: Tensor, params: Tensor, dparams: Tensor) -> Tensor:
    """Return the derivative of a warp in its parameters: image slope times speed of the point.

    Bilinear interpolation has a kink at each pixel's centre; there the slope is the mean of those
    on its two sides, which is what finite differences about it tend to.
    """
    height, width = x.shape[-2:]
    like = {"dtype": x.dtype, "device": x.device}
    across = torch.arange(width, **like) - (width - 1) / 2
    down = (torch.arange(height, **like) - (height - 1) / 2).unsqueeze(1)

    def points(p: Tensor) -> Tensor:
        a, b, c, d, x0, y0 = (part[..., None, None] for part in warp.inverse(p, height, width))
        u = a * across + b * down + x0
        v = c * across + d * down + y0
        return torch.stack(torch.broadcast_tensors(u, v), dim=-1)  # (1, 1, height, width, 2)

    at, speed = jvp(points, params, dparams)
    at, speed = at.flatten(0, 1), speed.flatten(0, 1)
    half = torch.tensor([(width - 1) / 2, (height - 1) / 2], **like)
    size = torch.tensor([width / 2, height / 2], **like)
    images = x.squeeze(0)

    def read(axis: int, place: Tensor) -> Tensor:
        moved = at.clone()
        moved[..., axis] = place - half[axis]
        return sample(images, (moved / size).expand(len(images), -1, -1, -1))

    total = torch.zeros_like(images)
    for axis in (0, 1):
        pixel = at[..., axis] + half[axis]
        near = pixel.round()
        pixel = torch.where((pixel - near).abs() < _SNAP, near, pixel)
        low, high = pixel.floor(), pixel.ceil()
        slope = read(axis, low + 1) - read(axis, low) + read(axis, high) - read(axis, high - 1)
        total = total + 0.5 * slope * speed[..., axis].unsqueeze(1)
    return total.unsqueeze(0)
