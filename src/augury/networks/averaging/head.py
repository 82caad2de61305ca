"""The rest of a network as a head: maps features to outputs, as the objectives expect."""

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
from augury._base.text import kind_of
from augury.features.orbit import Orbit
from augury.networks.averaging.norms import Statistics
from augury.networks.layers.cut import Cut
from augury.objectives import Loss, first_order, variance_term
from augury.objectives.objectives import Curvature


def to_features(output: Tensor) -> Tensor:
    """Permute a layer's output to its order in memory: channels last stay last."""
    return output.permute(0, 2, 3, 1) if _channels_last(output) else output


@dataclass(frozen=True)
class Rest:
    """The rest of a network after a cut, for features made by `to_features`."""

    cut: Cut
    permuted: bool
    """Whether the channels are last in the features."""
    dtype: torch.dtype
    """The dtype of the layer's output; the features may have a longer one."""

    def head(
        self, x: Tensor, *, plain: bool = False, checked: bool = False
    ) -> Callable[[Tensor], Tensor]:
        """Return f, with outputs in single precision or more, for a batch x of as many rows."""
        return functools.partial(self._run, x, plain, checked)

    def _run(self, x: Tensor, plain: bool, checked: bool, features: Tensor) -> Tensor:
        if self.permuted:
            features = features.permute(0, 3, 1, 2)
        output = self.cut.upper(features.to(self.dtype), x, plain=plain, checked=checked)
        if not isinstance(output, Tensor):
            raise AuguryError(
                f"the network returns {kind_of(output)}, not a tensor; wrap it in a module "
                "whose forward returns only the outputs"
            )
        return output.float() if output.dtype in HALF_FLOATS else output


def first(rest: Rest, orbit: Orbit, x: Tensor, y: Tensor, loss: Loss) -> Tensor:
    """Return ĝ of each example: one pass through the rest of the network."""
    return first_order(rest.head(x, checked=True), orbit, y, loss)


def second(
    rest: Rest, orbit: Orbit, x: Tensor, y: Tensor, loss: Loss, curvature: Curvature
) -> Tensor:
    """Return g̃ of each example: one pass, and a Jacobian-vector product for each direction.

    All passes use the same dropout masks and the batch norm statistics of the averaged features.
    They do not run compiled.
    """
    head, network = rest.head(x, plain=True), rest.cut.network
    statistics = Statistics(network)
    again = _draws(x.device)
    with statistics.recorded():
        value = first_order(rest.head(x, plain=True, checked=True), orbit, y, loss)
    still = statistics.held(head)

    def repeat(features: Tensor) -> Tensor:
        if network.training:
            again()
        return still(features)

    with _differentiable():
        return value + variance_term(repeat, orbit, y, loss, curvature)


@contextlib.contextmanager
def _differentiable() -> Iterator[None]:
    """Use the attention kernel that supports forward-mode differentiation."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _draws(device: torch.device) -> Callable[[], None]:
    """Save the state of torch's generators, which dropout uses; return a function to restore it."""
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
