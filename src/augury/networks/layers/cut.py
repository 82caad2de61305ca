"""A network cut in two at a layer: φ up to it, f from it on, for any `nn.Module`.

Both halves are the network's own forward pass. In the lower one, the pass ends once the layer has
returned and its forward hooks have run. In the upper one, the layer returns the given features,
and everything before it is skipped: modules that had finished by then return zeros of the right
shape at no cost.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from augury._base.errors import AuguryError
from augury.networks.layers.calls import (
    LayerCall,
    Reached,
    Shape,
    after_hooks,
    answering,
    record_shapes,
    replaced,
)
from augury.networks.layers.find import INPUT, find_layer, not_a_tensor


class Cut:
    """The two halves of a network.

    Parameters
    ----------
    network
        The network; only a weak reference is kept, so that a cached cut does not keep it alive.
    layer
        The layer's module path, or ``"input"``.
    x
        A batch ``(b, *shape)`` of the kind that will be run; its size does not matter.
    through
        What to run each half through, for example ``torch.compile``.
    """

    def __init__(
        self,
        network: nn.Module,
        layer: str,
        x: Tensor,
        through: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> None:
        self.layer = layer
        self._network = weakref.ref(network)
        self._run_lower, self._run_upper = _lower, self._inject
        if through is not None:
            self._run_lower, self._run_upper = through(_lower), through(self._inject)
        self._features: Tensor | None = None
        self._leaf: Tensor | None = None
        self._given_times = 0
        self._node: Any = None
        self._rows = 0
        self._counts: dict[str, int] = {}
        self.before: list[tuple[LayerCall, Shape]] = []
        self._upper_forward: list[tuple[nn.Module, Callable[..., Any]]] = []
        if layer != INPUT:
            self._trace(network, x)

    def _trace(self, network: nn.Module, x: Tensor) -> None:
        module = find_layer(network, self.layer)
        calls = record_shapes(network, x)
        own = [call for call, _ in calls if call.module is module]
        if len(own) != 1:
            times = f"{len(own)} times" if own else "never"
            raise NoCut(f"the layer {self.layer!r} is called {times} in a forward pass, not once")
        (self.call,) = own
        if self.call.again:
            raise NoCut(
                f"the layer {self.layer!r} is inside a checkpoint, which runs it again in the "
                "backward pass"
            )
        if not isinstance(self.call.output, Tensor):
            raise not_a_tensor(self.layer, self.call.output)
        self.shape = next(shape for call, shape in calls if call is self.call)
        self.before = [
            (call, shape)
            for call, shape in calls
            if call.ended < self.call.started and call.parents == self.call.parents[: _depth(call)]
        ]
        skipped: dict[nn.Module, list[Shape]] = {}
        for call, shape in self.before:
            skipped.setdefault(call.module, []).append(shape)
        self._lower_forward = [(module, _stopping(module))]
        for index, (earlier, shapes) in enumerate(skipped.items()):
            self._upper_forward.append((earlier, self._skip(str(index), earlier.forward, shapes)))

    @property
    def network(self) -> nn.Module:
        """The network."""
        return cast(nn.Module, self._network())

    def lower(self, x: Tensor) -> Tensor:
        """φ: map inputs to the layer's output; what comes after it does not run."""
        if self.layer == INPUT:
            return x
        with replaced(self._lower_forward):
            return self._run_lower(self.network, x)

    def upper(
        self, features: Tensor, x: Tensor, *, plain: bool = False, checked: bool = False
    ) -> Any:
        """f: map the layer's output to the network's; what comes before it does not run.

        `x` is a batch of as many rows as the features; only its shape matters. With `plain` it
        does not run through `through`. With `checked`, raise `Changed` if the forward pass is no
        longer the one that was cut: if autograd sees a path from the input around the layer, or
        the layer is not called once. What is compiled, or runs without gradients, is not checked.
        """
        run = self._inject if plain else self._run_upper
        if checked and self.layer != INPUT and run == self._inject and torch.is_grad_enabled():
            self._leaf = torch.zeros((), requires_grad=True, device=x.device)
        with contextlib.ExitStack() as stack:
            stack.callback(self._forget)
            stack.enter_context(replaced(self._upper_forward))
            if self.layer != INPUT:
                stack.enter_context(answering(self.call.module, self._given))
            output = run(self.network, features, x)
            self._check(output)
            return output

    def _inject(self, network: nn.Module, features: Tensor, x: Tensor) -> Any:
        # A copy: what comes next may work in place, and the features are still needed.
        self._features, self._rows = features.clone(), x.shape[0]
        self._node, self._given_times = self._features.grad_fn, 0
        if self.layer == INPUT:
            return network(self._features)
        for key in self._counts:
            self._counts[key] = 0
        return network(self._marked(x))

    def _marked(self, value: Any) -> Any:
        """Return what comes before the layer, so that autograd sees where it goes, if checked."""
        if self._leaf is None or not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        return _Marked.apply(self._leaf, value)

    def _check(self, output: Any) -> None:
        """Raise if what comes before the layer has gone into the output on another way."""
        if self._leaf is None:
            return
        ends = {part.grad_fn for part in pytree.tree_leaves(output) if isinstance(part, Tensor)}
        past = any(reaches(end, [self._leaf], self._node) for end in ends)
        if past or self._given_times != 1:
            raise Changed(
                f"the network's forward pass no longer leads through the layer {self.layer!r} "
                "alone, as it did when it was cut there; keep it the same during training"
            )

    def _forget(self) -> None:
        self._features = self._leaf = self._node = None

    def _given(self, *args: Any, **options: Any) -> Tensor:
        self._given_times += 1
        return cast(Tensor, self._features)

    def _skip(self, key: str, real: Callable[..., Any], shapes: list[Shape]) -> Callable[..., Any]:
        """Return a forward that returns zeros before the layer and runs as usual after it."""
        self._counts[key] = 0

        def forward(*args: Any, **options: Any) -> Any:
            k = self._counts[key]
            self._counts[key] = k + 1
            if k >= len(shapes):
                return real(*args, **options)
            zeros = shapes[k].zeros(self._rows)
            return zeros if self._leaf is None else pytree.tree_map(self._marked, zeros)

        return forward


class NoCut(AuguryError):
    """The network cannot be cut at this layer; another may do."""


class Changed(AuguryError):
    """The forward pass is no longer the one that was cut: the cut must be made anew."""


class _Marked(torch.autograd.Function):
    """The identity, with a leaf behind it in autograd's graph."""

    @staticmethod
    def forward(ctx: Any, leaf: Tensor, value: Tensor) -> Tensor:
        return value.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None]:
        return None, None


def reaches(node: Any, leaves: list[Tensor], avoided: Any = None) -> bool:
    """Return whether a path leads from a node of autograd's graph to a leaf, avoiding one node."""
    seen, left = {None, avoided}, [node]
    while left:
        at = left.pop()
        if at in seen:
            continue
        seen.add(at)
        variable = getattr(at, "variable", None)
        if variable is not None and any(variable is leaf for leaf in leaves):
            return True
        left += [before for before, _ in at.next_functions]
    return False


def _lower(network: nn.Module, x: Tensor) -> Tensor:
    try:
        network(x)
    except Reached as reached:
        return reached.output
    raise Changed("the layer is not used in the network's forward pass")


def _stopping(module: nn.Module) -> Callable[..., Any]:
    real = module.forward

    def forward(*args: Any, **options: Any) -> Any:
        raise Reached(after_hooks(module, args, options, real(*args, **options)))

    return forward


def _depth(call: LayerCall) -> int:
    return len(call.parents)


def rows_first(cut: Cut) -> bool:
    """Return whether the first dimension of the layer's output is the batch."""
    if cut.layer == INPUT:
        return True
    two, three = (cut.shape.zeros(count) for count in (2, 3))
    return two.dim() > 0 and (two.shape[0], three.shape[0]) == (2, 3)
