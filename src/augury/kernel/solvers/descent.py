"""Stochastic gradient descent with momentum, with the paper's settings (Appendix E.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from augury.features.orbit import Orbit
from augury.objectives import Loss


def descend(
    head: nn.Module,
    orbit_of: Callable[[Tensor], Orbit],
    y: Tensor,
    objective: Callable[..., Tensor],
    loss: Loss,
    *,
    rate: float = 0.01,
    momentum: float = 0.9,
    batch: int = 256,
    epochs: int = 15,
    ridge: float = 0.0,
    seed: int = 0,
    on_epoch: Callable[[int], Any] = lambda epoch: None,
) -> None:
    """Train a head on an objective, in place.

    Parameters
    ----------
    head
        Features to outputs.
    orbit_of
        From the numbers of some examples to their orbit.
    y
        The targets of all examples.
    objective
        One of `augury.objectives`.
    loss
        Of one example.
    rate, momentum, batch, epochs
        The paper's: 0.01, 0.9, 256 and 15.
    ridge
        λ of a penalty λ‖w‖².
    seed
        Of the order of examples, which is new in each epoch.
    on_epoch
        Called after each epoch with its number, from 1.
    """
    optimizer = torch.optim.SGD(
        head.parameters(), lr=rate, momentum=momentum, weight_decay=2 * ridge
    )
    generator = torch.Generator().manual_seed(seed)
    for epoch in range(1, epochs + 1):
        for index in torch.randperm(len(y), generator=generator).split(batch):
            optimizer.zero_grad()
            objective(head, orbit_of(index), y[index.to(y.device)], loss).mean().backward()
            optimizer.step()
        on_epoch(epoch)
