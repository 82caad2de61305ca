"""Batch norm under a second-order term: its statistics are held constant as the features change.

In training, batch norm's statistics are those of the averaged features. A view's deviation is a
small change of one example's features relative to them, as it would be relative to the statistics
of a batch that holds all views; they must not change with it. Nor may the passes of the
Jacobian-vector products count as batches in the running statistics.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from augury._base.devices import HALF_FLOATS
from augury._base.errors import AuguryError
from augury.networks.layers.calls import replaced


class Statistics:
    """The batch norm statistics of one pass, for use in the passes that follow."""

    def __init__(self, network: nn.Module) -> None:
        self._norms = [m for m in network.modules() if isinstance(m, _BatchNorm) and _live(m)]
        for norm in self._norms:
            if isinstance(norm, nn.SyncBatchNorm):
                raise AuguryError(
                    "SyncBatchNorm does not support forward-mode differentiation; use order=1, or "
                    "BatchNorm with the statistics of each process"
                )
        self._seen: list[list[tuple[Tensor, Tensor]]] = [[] for _ in self._norms]

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the statistics of the pass made in this block."""
        with replaced(
            [(n, _recording(n, s)) for n, s in zip(self._norms, self._seen, strict=True)]
        ):
            yield

    def held(self, head: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """Return the same head, with the recorded statistics."""
        if not self._norms:
            return head

        def still(features: Tensor) -> Tensor:
            pairs = zip(self._norms, self._seen, strict=True)
            with replaced([(norm, _holding(norm, seen)) for norm, seen in pairs]):
                return head(features)

        return still


def _live(norm: _BatchNorm) -> bool:
    return norm.training or norm.running_mean is None


def _recording(norm: _BatchNorm, seen: list[tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    real = norm.forward

    def forward(x: Tensor) -> Tensor:
        over = [d for d in range(x.dim()) if d != 1]
        exact = x.float() if x.dtype in HALF_FLOATS else x
        variance, mean = torch.var_mean(exact, over, correction=0)
        seen.append((mean, variance))
        return real(x)

    return forward


def _holding(norm: _BatchNorm, seen: list[tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    left = iter(seen)

    def forward(x: Tensor) -> Tensor:
        mean, variance = (s.view(1, -1, *[1] * (x.dim() - 2)) for s in next(left))
        out = (x - mean) * (variance + norm.eps).rsqrt()
        if norm.affine:
            weight, bias = (p.view_as(mean) for p in (norm.weight, norm.bias))
            out = out * weight + bias
        return out.to(x.dtype)

    return forward
