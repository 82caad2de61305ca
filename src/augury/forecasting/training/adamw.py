"""AdamW with a one-cycle schedule, as torch's, without what torch's imports.

The first step of an optimizer of ``torch.optim`` imports torch's compiler: 800 modules and one to
five seconds, which a short trial would spend mostly there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

_RISING = 0.3  # of the steps, as in PyTorch's one-cycle schedule
_MOMENTA = (0.95, 0.85)  # at the lowest and the highest rate, as there
_SECOND, _LEAST = 0.999, 1e-8  # AdamW's second momentum and its ε


class AdamW:
    """Loshchilov and Hutter's AdamW; the rate and the momentum are given at each step."""

    def __init__(self, parameters: Iterable[Tensor], decay: float) -> None:
        self.parameters, self.decay = list(parameters), decay
        self._first = [torch.zeros_like(p) for p in self.parameters]
        self._second = [torch.zeros_like(p) for p in self.parameters]
        self._count = torch.zeros((), device=self.parameters[0].device)

    def step(self, rate: float, momentum: float) -> None:
        """Change the parameters by their gradients."""
        grads = [p.grad for p in self.parameters if p.grad is not None]
        self._count += 1
        torch.ops.aten._fused_adamw_(
            self.parameters, grads, self._first, self._second, [], [self._count] * len(grads),
            lr=rate, beta1=momentum, beta2=_SECOND, weight_decay=self.decay, eps=_LEAST,
            amsgrad=False, maximize=False,
        )  # fmt: skip

    def forget(self) -> None:
        """Drop the gradients, so that the next ones replace them."""
        for p in self.parameters:
            p.grad = None


def one_cycle(step: int, steps: int) -> tuple[float, float]:
    """Return the share of the peak rate, and the momentum, of a step.

    The rate goes from 1/25 up to 1 in the first 30 % of the steps, then down to nearly 0, and the
    momentum the other way.
    """
    low, high = _MOMENTA
    rising = _RISING * steps - 1
    if step <= rising:
        at = step / rising
        return _cosine(1 / 25, 1.0, at), _cosine(low, high, at)
    at = (step - rising) / (steps - 1 - rising)
    return _cosine(1.0, 1 / 25e4, at), _cosine(high, low, at)


def _cosine(start: float, end: float, at: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * at)) / 2
