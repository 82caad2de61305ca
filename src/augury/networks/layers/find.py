"""Find the layers of a network by name."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.given import as_names
from augury._base.text import cause, kind_of, listed, nearest

INPUT = "input"
"""The name of the place before the first layer."""

_COMPILED = "OptimizedModule"  # what torch.compile makes; by name, as importing it takes seconds


def find_layer(network: nn.Module, name: str) -> nn.Module:
    """Return a layer by its module path, as in ``network.named_modules()``."""
    if not isinstance(name, str):
        raise AuguryError(f"a layer is named by a string, its path, got {kind_of(name)}")
    check_network(network)
    modules = dict(network.named_modules(remove_duplicate=False))
    if name and name in modules:
        return modules[name]
    known = [m for m in (INPUT, *modules) if m and m != name]
    near = nearest(name, known, 3, 0.3)
    others = f"similar names: {', '.join(near)}" if near else f"its layers: {listed(known)}"
    raise AuguryError(f"the network has no layer {name!r}; {others}")


def match_layers(network: nn.Module, patterns: Sequence[str] | str) -> list[str]:
    """Return the layers whose names match one of the patterns, such as ``"layer1.*"``."""
    known = [INPUT, *(name for name, _ in network.named_modules() if name)]
    found: list[str] = []
    for pattern in as_names("layers", patterns):
        some = fnmatch.filter(known, pattern)
        if not some:
            find_layer(network, pattern)  # raises, with near names
            some = [pattern]  # a second name of a layer that is listed under its first
        found += some
    return list(dict.fromkeys(found))


def not_a_tensor(name: str, output: Any) -> AuguryError:
    """Return the error for a layer whose output is not one tensor."""
    return AuguryError(
        f"the layer {name!r} returns {kind_of(output)}, not a tensor; "
        "choose a layer with one tensor as output"
    )


def bad_batch(name: str, x: Tensor, error: Exception, *, script: bool = False) -> AuguryError:
    """Return the error for a network that fails on a batch."""
    # TorchScript states the cause last, after a traceback of its own.
    reason = str(error).strip().splitlines()[-1] if script else cause(error)
    return AuguryError(
        f"{name} cannot take a batch of shape {tuple(x.shape)} ({reason}); "
        "use a network that accepts this data"
    )


def check_runs(network: nn.Module, x: Tensor, name: str) -> None:
    """Raise if a network does not run on a batch."""
    try:
        with torch.no_grad():
            network(x)
    except Exception as error:  # whatever a user's module may raise
        raise bad_batch(name, x, error, script=is_script(network)) from error


def check_network(network: Any) -> None:
    """Raise unless this is a module."""
    if not isinstance(network, nn.Module):
        raise AuguryError(f"the network must be a torch.nn.Module, not {kind_of(network)}")


def unwrapped(network: nn.Module) -> nn.Module:
    """Return the network inside a compiled one; raise for wrappers that must stay outside."""
    check_network(network)
    kind = type(network).__name__
    if kind in ("DistributedDataParallel", "FullyShardedDataParallel", "DataParallel"):
        raise AuguryError(
            f"averaging must run inside {kind}, or gradients would not be shared: "
            f"use {kind}(augury.Averaged(network, averaging))"
        )
    return network.get_submodule("_orig_mod") if kind == _COMPILED else network


def compiler(network: nn.Module) -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """Return what compiles a function as this network was compiled; None if it was not."""
    return getattr(network, "dynamo_ctx", None) if type(network).__name__ == _COMPILED else None


def is_script(network: nn.Module) -> TypeGuard[torch.jit.ScriptModule]:
    """Return whether a network is a TorchScript program."""
    return isinstance(network, torch.jit.ScriptModule)
