"""The SGD loop of all experiments: one order of batches, one step, recorded once and replayed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


def train(
    model: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    order: Tensor,
    rates: Tensor,
    *,
    epochs: int,
    momentum: float,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    changed: Iterable[Tensor] = (),
    begin: Callable[[int], None] = lambda epoch: None,
    end: Callable[[int], None] = lambda epoch: None,
    tick: Callable[[float], None] = lambda share: None,
) -> float:
    """Train a model in place and return the seconds it took.

    Parameters
    ----------
    model
        Its parameters are trained, its buffers may change.
    loss
        Called with the examples of the step ``(batch,)`` and the number of the step ``(1,)``, both
        on the device; returns one number. It must read and write tensors that stay where they are
        and must not copy anything to the host, since a GPU records it once.
    order
        The examples of each step, from `batch_order`.
    rates
        The learning rate of each step.
    epochs, momentum, weight_decay, nesterov
        Of the training.
    changed
        Other tensors that `loss` changes.
    begin, end
        Called with the number of an epoch before its first step and after its last; both count
        towards the time.
    tick
        Called with the share of the steps that is done.
    """
    device, fast = order.device, order.is_cuda
    counter = torch.zeros(1, dtype=torch.int64, device=device)
    rates = rates.to(next(model.parameters()))
    rate = rates[0].clone()  # a tensor, so that a recorded step can change it
    optimizer = torch.optim.SGD(
        model.parameters(),
        rate,
        momentum=momentum,
        nesterov=nesterov,
        weight_decay=weight_decay,
        fused=fast,
    )

    def step() -> None:
        rate.copy_(rates.index_select(0, counter).squeeze(0))
        value = loss(order.index_select(0, counter).squeeze(0), counter)
        counter.add_(1)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()

    started = now(device)
    begin(0)
    seconds = now(device) - started
    kept = [*model.parameters(), *model.buffers(), counter, *changed]
    run = _recorded(step, optimizer, kept, device)
    started, done, per_epoch = now(device), 0, len(order) // epochs
    for epoch in range(epochs):
        if epoch:
            begin(epoch)
        for _ in range(per_epoch):
            run()
            done += 1
            if done % 20 == 0 or done == len(order):
                tick(done / len(order))
        end(epoch)
    return seconds + now(device) - started


def batch_order(
    examples: int, batch_size: int, epochs: int, seed: int, device: torch.device
) -> Tensor:
    """Return the examples of each step, ``(steps, batch)``; every epoch is shuffled anew.

    The rest of an epoch that does not fill a batch is left out, another rest each time.
    """
    generator = torch.Generator().manual_seed(seed)
    batch_size = min(batch_size, examples)
    whole = examples // batch_size * batch_size
    epoch = [torch.randperm(examples, generator=generator)[:whole] for _ in range(epochs)]
    return torch.cat(epoch).view(-1, batch_size).to(device)


def learning_rates(order: Tensor, rate: float, *, falling: bool = False) -> Tensor:
    """Return the learning rate of each step: constant, or falling to 0 along a line."""
    steps = len(order)
    rates = torch.full((steps,), rate, dtype=torch.float64, device=order.device)
    return rates * torch.arange(steps, 0, -1, device=order.device) / steps if falling else rates


def now(device: torch.device) -> float:
    """Return the time once all work on a device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _recorded(
    step: Callable[[], None],
    optimizer: torch.optim.Optimizer,
    kept: Iterable[Tensor],
    device: torch.device,
) -> Callable[[], None]:
    """Return a cheaper equivalent of a step: a CUDA graph on a GPU, the step itself elsewhere.

    Small networks spend most of a step waiting for kernels to be launched. Recording takes a few
    steps, after which the tensors in `kept` and the optimizer's state are put back.
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
