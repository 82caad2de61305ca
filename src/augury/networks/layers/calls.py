"""Record which modules a forward pass calls, in which order, with outputs of which shape."""

from __future__ import annotations

import contextlib
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as of_all  # holds the hooks of all modules
from torch.utils import _pytree as pytree  # torch's own: knows tuples, dicts and named tuples
from torch.utils import checkpoint

from augury._base.errors import AuguryError

_ROWS = (2, 3)  # two batch sizes show which dimensions grow with the batch, and how fast


@dataclass(eq=False)  # two calls are the same only if they are one
class LayerCall:
    """One call of a module in a forward pass."""

    name: str
    module: nn.Module
    parents: tuple[LayerCall, ...]
    """The calls it was made in, the outermost first."""
    started: int
    ended: int = -1
    output: Any = field(default=None, repr=False)
    node: Any = None
    """The node of its output in autograd's graph on return; later work may be in place."""
    again: bool = False
    """Whether it is made again in the backward pass, by `torch.utils.checkpoint`."""
    inputs: tuple[Any, ...] = ()
    """The nodes of its arguments in autograd's graph when it was called."""

    @property
    def passes_on(self) -> bool:
        """Whether it returned an argument unchanged, as an empty `nn.Sequential` does."""
        return any(self.node is node for node in self.inputs)


class Reached(BaseException):
    """Ends a forward pass early. Not an error, so that no network's `except Exception` catches it.

    Parameters
    ----------
    output
        The output of the layer that was reached.
    """

    def __init__(self, output: Any) -> None:
        self.output = output


def record(network: nn.Module, x: Tensor) -> tuple[list[LayerCall], Any]:
    """Run a forward pass; return the calls of submodules as they ended, and the output."""
    names = {module: name for name, module in network.named_modules() if name}
    stack: list[LayerCall] = []
    done: list[LayerCall] = []
    clock = iter(range(1 << 62))

    def enter(module: nn.Module, args: Any) -> None:
        again = _checkpointed()
        nodes = tuple(a.grad_fn for a in args if isinstance(a, Tensor))
        call = LayerCall(
            names[module], module, tuple(stack), next(clock), again=again, inputs=nodes
        )
        stack.append(call)

    def leave(module: nn.Module, args: Any, output: Any) -> None:
        call = stack.pop()
        call.ended, call.output = next(clock), output
        call.node = getattr(output, "grad_fn", None)
        done.append(call)

    with contextlib.ExitStack() as hooks:
        for module in names:
            hooks.callback(module.register_forward_pre_hook(enter).remove)
            hooks.callback(module.register_forward_hook(leave).remove)
        output = network(x)
    return done, output


def _checkpointed() -> bool:
    """Return whether the forward pass that `record` watches is inside a checkpoint."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not record.__code__:
        if frame.f_code.co_filename == checkpoint.__file__:
            return True
        frame = frame.f_back
    return False


def rows(x: Tensor, count: int) -> Tensor:
    """Return a batch of another size, repeating examples if there are too few."""
    return x[torch.arange(count, device=x.device) % len(x)]


@contextlib.contextmanager
def undisturbed(network: nn.Module) -> Iterator[None]:
    """Restore buffers (batch norm's statistics) and the random state after the block."""
    tensors = [*network.parameters(), *network.buffers()]
    devices = sorted({t.device.index or 0 for t in tensors if t.device.type == "cuda"})
    # Copies are put in the buffers' place, so that a graph that waits for its backward pass
    # still finds what it saved.
    owners = [(m, dict(m._buffers)) for m in network.modules() if m._buffers]
    with torch.random.fork_rng(devices=devices):
        try:
            for module, buffers in owners:
                module._buffers.update(
                    {k: v if v is None else v.detach().clone() for k, v in buffers.items()}
                )
            yield
        finally:
            for module, buffers in owners:
                module._buffers.update(buffers)


@contextlib.contextmanager
def replaced(forwards: Sequence[tuple[nn.Module, Callable[..., Any]]]) -> Iterator[None]:
    """Replace the forward functions of modules while the block runs."""
    before = [(module, module.__dict__.get("forward")) for module, _ in forwards]
    try:
        for module, forward in forwards:
            module.__dict__["forward"] = forward
        yield
    finally:
        for module, forward in before:
            if forward is None:
                module.__dict__.pop("forward", None)
            else:
                module.__dict__["forward"] = forward


def after_hooks(
    module: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any
) -> Any:
    """Return what a module's forward hooks make of its output, run as torch runs them."""
    keyed = module._forward_hooks_with_kwargs
    for key, hook in (*of_all._global_forward_hooks.items(), *module._forward_hooks.items()):
        given = (args, options) if key in keyed else (args,)
        found = hook(module, *given, output)
        output = output if found is None else found
    return output


@contextlib.contextmanager
def answering(module: nn.Module, answer: Callable[..., Any]) -> Iterator[None]:
    """Make a module return an answer while the block runs, whatever its forward hooks do."""
    own = module._forward_hooks
    if not own and not of_all._global_forward_hooks:
        with replaced([(module, answer)]):
            yield
        return
    given: list[Any] = []

    def forward(*args: Any, **options: Any) -> Any:
        given.append(answer(*args, **options))
        return given[-1]

    with replaced([(module, forward)]):
        try:
            # One hook, the last to run: what hooks do to the output is in the answer already.
            last = OrderedDict([(-1, lambda _module, _args, _output: given.pop())])
            module.__dict__["_forward_hooks"] = last
            yield
        finally:
            module.__dict__["_forward_hooks"] = own


@dataclass(frozen=True)
class Shape:
    """The shapes of a call's output for any batch size: each side is `fixed + slope · rows`."""

    tree: pytree.TreeSpec
    leaves: tuple[Any, ...]

    @classmethod
    def between(cls, small: Any, large: Any) -> Shape:
        """Return the shape that fits the outputs for 2 and for 3 rows."""
        few, tree = pytree.tree_flatten(small)
        many, _ = pytree.tree_flatten(large)
        return cls(tree, tuple(_side(a, b) for a, b in zip(few, many, strict=True)))

    def zeros(self, count: int) -> Any:
        """Return an output of this shape for `count` rows, all zero."""
        leaves = [
            leaf.zeros(count) if isinstance(leaf, _TensorShape) else leaf for leaf in self.leaves
        ]
        return pytree.tree_unflatten(leaves, self.tree)


@dataclass(frozen=True)
class _TensorShape:
    sides: tuple[tuple[int, int], ...]
    dtype: torch.dtype
    device: torch.device

    def zeros(self, count: int) -> Tensor:
        size = [fixed + slope * count for fixed, slope in self.sides]
        return torch.zeros(size, dtype=self.dtype, device=self.device)


def _side(small: Any, large: Any) -> Any:
    if not isinstance(small, Tensor):
        return small
    slopes = [b - a for a, b in zip(small.shape, large.shape, strict=True)]
    sides = tuple((a - _ROWS[0] * s, s) for a, s in zip(small.shape, slopes, strict=True))
    return _TensorShape(sides, small.dtype, small.device)


def record_shapes(network: nn.Module, x: Tensor) -> list[tuple[LayerCall, Shape]]:
    """Record a forward pass at two batch sizes; return its calls and their shapes for any size.

    The calls are those of the smaller batch. The network is left unchanged.
    """
    with undisturbed(network), torch.no_grad():
        small, large = (record(network, rows(x, count))[0] for count in _ROWS)
    same = len(small) == len(large) and all(
        a.module is b.module for a, b in zip(small, large, strict=True)
    )
    if not same:
        raise AuguryError(
            "the network calls different modules for 2 and for 3 examples, so it cannot be cut: "
            "its forward pass must not depend on the batch size or be random"
        )
    return [(a, Shape.between(a.output, b.output)) for a, b in zip(small, large, strict=True)]
