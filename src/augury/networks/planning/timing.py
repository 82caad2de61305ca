"""Time, work and error of averaging at a layer, measured without leaving a trace."""

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

Key = TypeVar("Key", bound=Hashable)


@contextlib.contextmanager
def in_mode(network: nn.Module, training: bool) -> Iterator[None]:
    """Put a network in training or eval mode while the block runs; nothing of it changes."""
    before = {module: module.training for module in network.modules()}
    with undisturbed(network):
        try:
            network.train(training)
            yield
        finally:
            for module, mode in before.items():
                module.training = mode


def flops(run: Callable[[], object]) -> int:
    """Count the floating-point operations of a call, as torch does: products and sums."""
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def seconds(
    runs: Mapping[Key, Callable[[], object]], device: torch.device, repeats: int
) -> dict[Key, float]:
    """Give the median time of each call, after one to warm up.

    They take turns, so that whatever else the machine does falls on all of them alike.
    """
    times: dict[Key, list[float]] = {key: [] for key in runs}
    for k in range(repeats + 1):
        for key, run in runs.items():
            _wait(device)
            start = time.perf_counter()
            run()
            _wait(device)
            if k:
                times[key].append(time.perf_counter() - start)
    return {key: statistics.median(some) for key, some in times.items()}


def step(network: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """Make a training step: a loss and its gradient, of which nothing is left on the parameters."""
    parameters = [p for p in network.parameters() if p.requires_grad]

    def run() -> None:
        torch.autograd.grad(loss(), parameters, allow_unused=True)

    return run


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
