"""Check that a layer cuts a network in two: it is the only path from the input to the output.

Averaging at a layer inside a residual branch would leave the skip connection with all views, or,
at batch size one, add them up by broadcasting. So before the first use the layer is made to return
a constant: if the output still depends on the input, there is another path around the layer.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from augury._base.errors import AuguryError
from augury._base.given import check_batch
from augury.networks.layers.calls import answering, record, replaced, rows, undisturbed
from augury.networks.layers.cut import Cut, NoCut, reaches, rows_first
from augury.networks.layers.find import INPUT, check_runs, compiler, find_layer, unwrapped

_kept: weakref.WeakKeyDictionary[nn.Module, dict[Any, Cut]] = weakref.WeakKeyDictionary()


def cut_at(network: nn.Module, layer: str, x: Tensor) -> Cut:
    """Cut a network at a layer; if it does not cut, raise with the name of a layer that does.

    The first call costs a few forward passes of two and three examples, which leave the network
    unchanged; later calls with inputs of the same shape reuse the cut. A forward pass that changes
    later is seen by `Cut.upper`, and `forget` makes the next call cut anew.
    """
    inner = unwrapped(network)
    auto = torch.is_autocast_enabled(x.device.type)
    key = (layer, tuple(x.shape[1:]), x.dtype, x.device, inner.training, auto)
    known = _kept.setdefault(network, {})
    cut = known.get(key)
    if cut is None or (layer != INPUT and find_layer(inner, layer) is not cut.call.module):
        cut = known[key] = _checked(network, inner, layer, x)
    return cut


def forget(network: nn.Module) -> None:
    """Drop the cuts of a network whose forward pass has changed."""
    _kept.pop(network, None)


def _checked(network: nn.Module, inner: nn.Module, layer: str, x: Tensor) -> Cut:
    try:
        cut = Cut(inner, layer, x, compiler(network))
    except NoCut as error:
        raise AuguryError(f"{error}; {_advice(inner, layer, x)}") from None
    if not rows_first(cut):
        raise AuguryError(
            f"the layer {layer!r} returns shape {tuple(cut.call.output.shape)} for 2 examples; its "
            f"first dimension must be the batch; {_advice(inner, layer, x)}"
        )
    if layer != INPUT and _has_other_path(cut, x):
        raise AuguryError(
            f"the layer {layer!r} does not cut the network: another path bypasses it, "
            f"as in a residual block; {_advice(inner, layer, x)}"
        )
    return cut


def _has_other_path(cut: Cut, x: Tensor) -> bool:
    """Return whether the output depends on the input when the layer's output is held constant."""
    x = rows(x.detach(), 2)
    leaves = [x.clone().requires_grad_()] if x.is_floating_point() else []
    earlier: dict[nn.Module, int] = {}
    for call, _ in cut.before:
        earlier[call.module] = earlier.get(call.module, 0) + 1
    forwards = [(module, _cutting(module, times, leaves)) for module, times in earlier.items()]
    with undisturbed(cut.network), torch.no_grad():
        held = cut.lower(x).requires_grad_()
    layer = cut.call.module
    free = answering(layer, lambda *args, **options: held.clone())
    with undisturbed(cut.network), torch.enable_grad(), replaced(forwards), free:
        output = _joined(cut.network(leaves[0].clone() if leaves else x))
    if not reaches(output.grad_fn, [held]) or reaches(output.grad_fn, leaves):
        return True
    still = answering(layer, lambda *args, **options: held.detach().clone())
    with undisturbed(cut.network), torch.no_grad(), still:
        other = _joined(cut.network(x.flip(0) + 1 if leaves else torch.zeros_like(x)))
    # A path that autograd cannot see (a detached value, an index) still changes the output.
    return not torch.isclose(output, other, rtol=1e-5, equal_nan=True)


def _cutting(module: nn.Module, times: int, leaves: list[Tensor]) -> Callable[..., Any]:
    """Return a forward whose first outputs are leaves, so that a path from them can be seen."""
    real, left = module.forward, iter(range(times))

    def leaf(part: Any) -> Any:
        if not isinstance(part, Tensor) or not part.is_floating_point():
            return part
        leaves.append(part.detach().requires_grad_())
        return leaves[-1].clone()

    def forward(*args: Any, **options: Any) -> Any:
        output = real(*args, **options)
        return output if next(left, None) is None else pytree.tree_map(leaf, output)

    return forward


def _joined(output: Any) -> Tensor:
    """Return the sum of all floats that a network returns."""
    parts = [
        p for p in pytree.tree_leaves(output) if isinstance(p, Tensor) and p.is_floating_point()
    ]
    if not parts:
        raise AuguryError("the network returns no floating-point tensor, so it cannot be trained")
    return torch.stack([p.double().sum() for p in parts]).sum()


def cuts(network: nn.Module, x: Tensor) -> list[str]:
    """Return the layers that cut a network in two, from the input to the output.

    A layer cuts if every path from the output back to the input, in autograd's graph of one
    forward pass, leads through it. A container that only returns what its last part returned is
    left out. `cut_at` accepts every layer in the list.
    """
    inner = unwrapped(network)
    check_batch(x)
    x = rows(x.detach(), 2)
    if not x.is_floating_point():
        raise AuguryError(f"inputs must be floating-point to find the cuts, not {x.dtype}")
    x.requires_grad_()
    with undisturbed(inner), torch.enable_grad():
        check_runs(inner, x, type(inner).__name__)
        calls, output = record(inner, x)
        end = _joined(output).grad_fn
    names = [call.name for call in calls]
    found: dict[Any, str] = {}
    for call in calls:
        whole = isinstance(call.output, Tensor) and call.output.shape[:1] == (2,)
        whole = whole and not call.again
        once = names.count(call.name) == 1 and call.node not in found
        if not whole or not once or call.node is None or reaches(end, [x], call.node):
            continue
        # A layer that returns its argument shares its node with what came before, which may feed
        # other branches too: an empty shortcut beside a residual branch.
        if not call.passes_on or _cuts(inner, call.name, x.detach()):
            found[call.node] = call.name
    return [INPUT, *found.values()]


def _cuts(network: nn.Module, layer: str, x: Tensor) -> bool:
    try:
        cut = Cut(network, layer, x)
    except NoCut:
        return False
    return rows_first(cut) and not _has_other_path(cut, x)


def _advice(network: nn.Module, layer: str, x: Tensor) -> str:
    """Name the nearest layer that cuts: one around this one, else the next, else the last."""
    if not x.is_floating_point():
        return "choose a layer that every path leads through"
    good = cuts(network, x)
    with undisturbed(network), torch.no_grad():
        order = [call.name for call in record(network, rows(x, 2))[0]]
    round_it = [name for name in good if layer.startswith(f"{name}.")]
    last = max((k for k, name in enumerate(order) if name == layer), default=-1)
    after = [name for name in order[last + 1 :] if name in good]
    return f"average at {([*round_it[-1:], *after, good[-1]])[0]!r} instead"
