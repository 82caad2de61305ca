"""Read layers while a network runs: each output is seen once and not kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import Any

from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury.networks.layers.calls import Reached
from augury.networks.layers.find import INPUT, find_layer, is_script, not_a_tensor
from augury.networks.layers.paths import cuts

See = Callable[[str, Tensor], object]


def read_layers(network: nn.Module, x: Tensor, names: Collection[str] | None, see: See) -> None:
    """Run a network on x and call `see` with the name and the output of each layer as it ends.

    The pass stops after the last of the named layers.

    Parameters
    ----------
    network
        The network, or a TorchScript program.
    x
        A batch ``(b, *shape)``.
    names
        The layers to read. The second call of a layer is named ``name#2``, and so on. None reads
        all layers whose output is one tensor with a row for each example.
    see
        Called with ``(name, output)``. The output may change in place afterwards.
    """
    wanted = None if names is None else {name.partition("#")[0] for name in names}
    left = None if names is None else set(names)
    times: dict[str, int] = {}

    def hear(name: str, output: Any) -> None:
        times[name] = times.get(name, 0) + 1
        full = name if times[name] == 1 else f"{name}#{times[name]}"
        if left is not None and full not in left:
            return
        if isinstance(output, Tensor) and output.shape[:1] == x.shape[:1]:
            see(full, output)
        elif left is not None:
            raise _unreadable(full, output)
        if left is not None:
            left.discard(full)
            if not left:
                raise Reached(output)

    with contextlib.suppress(Reached):
        if wanted is None or INPUT in wanted:
            hear(INPUT, x)
        if is_script(network):
            from augury.networks.layers.script import run_script

            run_script(
                network,
                x,
                lambda name, output: (
                    hear(name, output) if wanted is None or name in wanted else None
                ),
            )
        else:
            _run(network, x, wanted, hear)
    if left:
        raise AuguryError(f"the layer {min(left)!r} is not used in the network's forward pass")


def _run(
    network: nn.Module, x: Tensor, wanted: set[str] | None, hear: Callable[[str, Any], None]
) -> None:
    if wanted is None:
        modules = {name: module for name, module in network.named_modules() if name}
    else:
        modules = {name: find_layer(network, name) for name in wanted if name != INPUT}
    with contextlib.ExitStack() as hooks:
        for name, module in modules.items():
            tap = module.register_forward_hook(lambda m, args, out, name=name: hear(name, out))
            hooks.callback(tap.remove)
        network(x)


def _unreadable(name: str, output: Any) -> AuguryError:
    if not isinstance(output, Tensor):
        return not_a_tensor(name, output)
    return AuguryError(
        f"the layer {name!r} returns shape {tuple(output.shape)}, whose first dimension is not "
        "the batch; choose another layer"
    )


def default_layers(network: nn.Module, x: Tensor) -> list[str]:
    """Return the layers to look at, in order: those that cut the network, residual blocks whole.

    For a TorchScript program, all layers whose output is one tensor.
    """
    if not is_script(network):
        return cuts(network, x)
    found: list[str] = []
    read_layers(network, x[:2], None, lambda name, output: found.append(name))
    return found
