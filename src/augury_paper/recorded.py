"""A training step recorded once and replayed: small networks wait for launches otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor


def recorded(
    step: Callable[[], None],
    optimizer: torch.optim.Optimizer,
    kept: Iterable[Tensor],
    device: torch.device,
) -> Callable[[], None]:
    """Give a step that does the same for less: a CUDA graph on a GPU, itself elsewhere.

    Parameters
    ----------
    step
        It reads and writes tensors that stay where they are, and asks the device for no number.
    optimizer
        The one that it uses, not used yet. Its state (momentum) starts from zero.
    kept
        The other tensors that a step changes: parameters, buffers, counters, sums. Recording
        takes some steps; these are put back as they were.
    device
        Where it all lies.
    """
    if device.type != "cuda":
        return step
    held = list(kept)
    before = [tensor.detach().clone() for tensor in held]
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(3):  # what is made once (plans, momentum) must be made before
            step()
    torch.cuda.current_stream(device).wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        step()
    with torch.no_grad():
        for tensor, was in zip(held, before, strict=True):
            tensor.copy_(was)
        for state in optimizer.state.values():
            for value in state.values():
                if isinstance(value, Tensor):
                    value.zero_()
    return graph.replay


def orders(examples: int, batch: int, epochs: int, seed: int, device: torch.device) -> Tensor:
    """Give the examples of each step of a training: ``(steps, batch)``, every epoch shuffled anew.

    What is left over of an epoch is left out, another part each time.
    """
    generator = torch.Generator().manual_seed(seed)
    batch = min(batch, examples)
    whole = examples // batch * batch
    epoch = [torch.randperm(examples, generator=generator)[:whole] for _ in range(epochs)]
    return torch.cat(epoch).view(-1, batch).to(device)
