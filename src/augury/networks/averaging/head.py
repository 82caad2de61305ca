"""The rest of a network as a head: features to outputs, fit for the objectives."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from augury._base.devices import HALF_FLOATS
from augury._base.errors import AuguryError
from augury.features.orbit import Orbit
from augury.networks.averaging.cut import Cut
from augury.networks.averaging.norms import Statistics
from augury.objectives import Loss, first_order, variance_term
from augury.objectives.objectives import Curvature


def to_features(output: Tensor) -> Tensor:
    """Bring a layer's output to the order in which it lies in memory: channels last stay last."""
    return output.permute(0, 2, 3, 1) if _channels_last(output) else output


@dataclass(frozen=True)
class Rest:
    """The rest of a network after a cut, for features made by `to_features`."""

    cut: Cut
    permuted: bool
    """Whether channels stand last in the features."""
    dtype: torch.dtype
    """That of the layer's output, where features are of a longer one."""

    def head(self, x: Tensor, *, plain: bool = False) -> Callable[[Tensor], Tensor]:
        """Give f, to outputs of at least single precision; x has as many rows as the features."""
        return functools.partial(self._run, x, plain)

    def _run(self, x: Tensor, plain: bool, features: Tensor) -> Tensor:
        if self.permuted:
            features = features.permute(0, 3, 1, 2)
        output = self.cut.upper(features.to(self.dtype), x, plain=plain)
        if not isinstance(output, Tensor):
            raise AuguryError(
                f"the network gives a {type(output).__name__}, not a tensor; wrap it in a module "
                "whose forward gives the outputs alone"
            )
        return output.float() if output.dtype in HALF_FLOATS else output


def first(rest: Rest, orbit: Orbit, x: Tensor, y: Tensor, loss: Loss) -> Tensor:
    """ĝ of each example: one pass through the rest of the network."""
    return first_order(rest.head(x), orbit, y, loss)


def second(
    rest: Rest, orbit: Orbit, x: Tensor, y: Tensor, loss: Loss, curvature: Curvature
) -> Tensor:
    """g̃ of each example: one pass, and a Jacobian-vector product for each direction of the orbit.

    All passes see the same dropout, and the batch norm statistics of the averaged features. They
    do not run compiled.
    """
    head, model = rest.head(x, plain=True), rest.cut.model
    statistics = Statistics(model)
    again = _draws(x.device)
    with statistics.noted():
        value = first_order(head, orbit, y, loss)
    still = statistics.held(head)

    def repeat(features: Tensor) -> Tensor:
        if model.training:
            again()
        return still(features)

    with _differentiable():
        return value + variance_term(repeat, orbit, y, loss, curvature)


@contextlib.contextmanager
def _differentiable() -> Iterator[None]:
    """Use kernels of attention that can be differentiated forwards."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _draws(device: torch.device) -> Callable[[], None]:
    """Remember the state of torch's generators, which dropout uses, and give what restores it."""
    state = torch.get_rng_state()
    if device.type != "cuda":
        return lambda: torch.set_rng_state(state)
    there = torch.cuda.get_rng_state(device)

    def restore() -> None:
        torch.set_rng_state(state)
        torch.cuda.set_rng_state(there, device)

    return restore


def _channels_last(x: Tensor) -> bool:
    last = torch.channels_last
    return x.dim() == 4 and x.is_contiguous(memory_format=last) and not x.is_contiguous()
