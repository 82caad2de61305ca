"""Time and work of training steps, measured without leaving a trace on the network."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from augury.networks.layers.calls import undisturbed
from augury.networks.layers.read import read_layers

Key = TypeVar("Key", bound=Hashable)

_LONG = 1.0  # seconds of a warm-up that need no repetition: start-up costs are small beside them


@contextlib.contextmanager
def in_mode(network: nn.Module, training: bool) -> Iterator[None]:
    """Put a network in training or eval mode while the block runs, and leave it unchanged."""
    before = {module: module.training for module in network.modules()}
    with undisturbed(network):
        try:
            network.train(training)
            yield
        finally:
            for module, mode in before.items():
                module.training = mode


def flops_before(network: nn.Module, x: Tensor, layers: list[str]) -> tuple[list[int], int]:
    """Return the operations of one example up to each layer, and in all."""
    found: dict[str, int] = {}
    with FlopCounterMode(display=False) as counter:
        read_layers(
            network, x, layers, lambda name, _: found.update({name: counter.get_total_flops()})
        )
    with FlopCounterMode(display=False) as total:
        network(x)
    return [found[name] // len(x) for name in layers], total.get_total_flops() // len(x)


def seconds(
    runs: Mapping[Key, Callable[[], object]], device: torch.device, repeats: int
) -> dict[Key, float]:
    """Return the median time of each call, after one to warm up.

    The calls take turns, so that other load on the machine affects all of them alike. A call
    whose warm-up takes a second or more is not repeated.
    """
    times: dict[Key, list[float]] = {key: [] for key in runs}
    for k in range(repeats + 1):
        for key, run in runs.items():
            if k and times[key] and times[key][0] >= _LONG:
                continue
            _wait(device)
            start = time.perf_counter()
            run()
            _wait(device)
            took = time.perf_counter() - start
            if k == 1:
                times[key].clear()  # of the warm-up
            times[key].append(took)
    return {key: statistics.median(some) for key, some in times.items()}


def gradient(network: nn.Module, loss: Tensor) -> list[Tensor]:
    """Return the gradient of a loss in the parameters, leaving none on them."""
    parameters = [p for p in network.parameters() if p.requires_grad]
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def distance(one: list[Tensor], other: list[Tensor]) -> float:
    """Return the Euclidean distance of two gradients."""
    squares = [(a - b).double().square().sum() for a, b in zip(one, other, strict=True)]
    return float(torch.stack(squares).sum().sqrt()) if squares else 0.0


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
