"""The views of a training step: from a quadrature rule if there is one, otherwise drawn."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from augury._base.devices import HALF_FLOATS
from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import Augmentation, Nodes
from augury.augmentations.base import matrices, to_device

_SEED = "{what} is drawn at random: pass seed=, a new one at each step (such as the step's number)"
_SMALL = 1024  # values of an example up to which its mean view is computed as one product


def views_of(
    augmentation: Augmentation, x: Tensor, n_views: int, rng: Rng | None, rule: bool = True
) -> tuple[Tensor, Tensor]:
    """Return views ``(n, b, *shape)`` and weights ``(n,)``, by a rule if wanted and known.

    The rule is kept on the device, so that a training step neither computes nor moves it.
    """
    nodes = rule_of(augmentation, n_views, x.device) if rule else None
    augmentation.check(tuple(x.shape[1:]))
    if nodes is not None:
        return augmentation.apply(x.unsqueeze(0), nodes.params), nodes.weights.to(x)
    rng = need_seed(rng, str(augmentation))
    weights = torch.full((n_views,), 1 / n_views, dtype=x.dtype, device=x.device)
    return augmentation.views(x, n_views, rng), weights


def need_seed(rng: Rng | None, what: str) -> Rng:
    """Return the generator; raise if there is none, naming what would be drawn."""
    if rng is None:
        raise AuguryError(_SEED.format(what=what))
    return rng


@functools.lru_cache(maxsize=64)
def rule_of(augmentation: Augmentation, n_views: int, device: torch.device) -> Nodes | None:
    """Return an augmentation's quadrature rule on a device, if it has one; cached between steps."""
    with torch.inference_mode(False):  # the next user of the cache may need gradients
        rule = augmentation.nodes(n_views)
        return rule and Nodes(to_device(rule.params, device), rule.weights.to(device))


def mean_view(augmentation: Augmentation, x: Tensor, n_views: int) -> Tensor | None:
    """Return the mean view of small images under its rule of linear maps: one matrix product.

    None if the images are large, in half precision, or the maps are not linear.
    """
    shape = tuple(x.shape[1:])
    if not augmentation.linear or math.prod(shape) > _SMALL or x.dtype in HALF_FLOATS:
        return None
    augmentation.check(shape)
    matrix = _mean_map(augmentation, n_views, shape, x.dtype, x.device)
    with torch.autocast(x.device.type, enabled=False):
        return (x.flatten(1) @ matrix).view_as(x)


@functools.lru_cache(maxsize=16)
def _mean_map(
    augmentation: Augmentation,
    n_views: int,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Return E t over a rule as a matrix: its rows are the mean views of single values."""
    rule = rule_of(augmentation, n_views, device)
    assert rule is not None  # `mean_view` is for augmentations that have one
    with torch.inference_mode(False), torch.no_grad():
        like = torch.empty(0, dtype=dtype, device=device)
        return torch.tensordot(
            rule.weights.to(like), matrices(augmentation, shape, rule.params, like), 1
        )
