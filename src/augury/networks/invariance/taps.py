"""Reading layers while a network runs: each output is looked at and let go, none is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury.networks.averaging.layers import INPUT, find_layer, not_a_tensor
from augury.networks.averaging.probe import cuts

See = Callable[[str, Tensor], None]


def tapped(model: nn.Module, x: Tensor, names: Collection[str] | None, see: See) -> None:
    """Run a network on x, and show the outputs of the layers of these names as they come.

    A layer that is called again is shown as ``name#2``, and so on. Without names, all layers are
    shown whose output is one tensor with a row for each example.
    """
    wanted = None if names is None else {name.partition("#")[0] for name in names}
    times: dict[str, int] = {}

    def hear(name: str, output: Any) -> None:
        times[name] = times.get(name, 0) + 1
        full = name if times[name] == 1 else f"{name}#{times[name]}"
        if names is not None and full not in names:
            return
        if not isinstance(output, Tensor) or output.shape[:1] != x.shape[:1]:
            if names is not None:
                raise _unfit(full, output)
            return
        see(full, output)

    if wanted is None or INPUT in wanted:
        hear(INPUT, x)
    if isinstance(model, torch.jit.ScriptModule):
        from augury.networks.invariance.script import run_script

        run_script(model, x, lambda name, out: hear(name, out) if _in(name, wanted) else None)
        return
    with contextlib.ExitStack() as hooks:
        modules = {name: module for name, module in model.named_modules() if name}
        if wanted is not None:
            modules = {name: find_layer(model, name) for name in wanted if name != INPUT}
        for name, module in modules.items():
            tap = module.register_forward_hook(lambda m, args, out, name=name: hear(name, out))
            hooks.callback(tap.remove)
        model(x)


def _in(name: str, wanted: Collection[str] | None) -> bool:
    return wanted is None or name in wanted


def _unfit(name: str, output: Any) -> AuguryError:
    if not isinstance(output, Tensor):
        return not_a_tensor(name, output)
    return AuguryError(
        f"the layer {name!r} gives {tuple(output.shape)}, and its first dimension must be the "
        "batch; choose another layer"
    )


def default_layers(model: nn.Module, x: Tensor) -> list[str]:
    """Give the layers to look at, in order: those that cut the network, residual blocks whole.

    Of a TorchScript program, all layers that give one tensor.
    """
    if not isinstance(model, torch.jit.ScriptModule):
        return cuts(model, x)
    found: list[str] = []
    tapped(model, x[:2], None, lambda name, output: found.append(name))
    return found
