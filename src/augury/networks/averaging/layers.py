"""The layers of a network by name, and the networks that can be cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from augury._base.errors import AuguryError
from augury._base.text import nearest

INPUT = "input"
"""The name of the place before the first layer."""

_COMPILED = "OptimizedModule"  # what torch.compile makes; by name, as importing it takes seconds


def find_layer(model: nn.Module, name: str) -> nn.Module:
    """Find a layer by its module path, as in ``model.named_modules()``."""
    modules = dict(model.named_modules(remove_duplicate=False))
    if name and name in modules:
        return modules[name]
    known = [m for m in modules if m]
    near = nearest(name, known, 3, 0.3) or [INPUT, *known[:8]]
    raise AuguryError(f"the network has no layer {name!r}; near names: {', '.join(near)}")


def not_a_tensor(name: str, output: Any) -> AuguryError:
    """Say that a layer's output cannot be averaged."""
    return AuguryError(
        f"the layer {name!r} gives a {type(output).__name__}, not a tensor; "
        "choose a layer with one tensor as output"
    )


def unwrapped(model: nn.Module) -> nn.Module:
    """Give the network inside a compiled one; refuse those that must be wrapped from outside."""
    if not isinstance(model, nn.Module):
        raise AuguryError(f"the network must be a torch.nn.Module, not {type(model).__name__}")
    kind = type(model).__name__
    if kind in ("DistributedDataParallel", "FullyShardedDataParallel", "DataParallel"):
        raise AuguryError(
            f"averaging works inside {kind}, not round it, or gradients would not be shared: "
            f"use {kind}(augury.Averaged(network, averaging))"
        )
    return model.get_submodule("_orig_mod") if kind == _COMPILED else model


def compiler(model: nn.Module) -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """Give what compiles a function as this network was compiled; None if it was not."""
    return getattr(model, "dynamo_ctx", None) if type(model).__name__ == _COMPILED else None
