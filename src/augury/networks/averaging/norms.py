"""Statistics and buffers under a second-order term: held constant as the features change.

In training, batch norm's statistics are those of the averaged features. A view's deviation is a
small change of one example's features relative to them, as it would be relative to the statistics
of a batch that holds all views; they must not change with it. Nor may the passes of the
Jacobian-vector products count as batches in running statistics, or advance any other buffer, such
as those of spectral norm: each of them starts with the buffers that the first pass started with.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from augury._base.devices import HALF_FLOATS
from augury._base.errors import AuguryError
from augury.networks.layers.calls import replaced


class Statistics:
    """The batch norm statistics and the buffers of one pass, for use in those that follow."""

    def __init__(self, network: nn.Module) -> None:
        self._norms = [m for m in network.modules() if isinstance(m, _BatchNorm) and _live(m)]
        for norm in self._norms:
            if isinstance(norm, nn.SyncBatchNorm):
                raise AuguryError(
                    "SyncBatchNorm does not support forward-mode differentiation; use order=1, or "
                    "BatchNorm with the statistics of each process"
                )
        self._seen: list[list[tuple[Tensor, Tensor]]] = [[] for _ in self._norms]
        held = set(self._norms)
        self._owners = [m for m in network.modules() if m._buffers and m not in held]
        self._before: list[tuple[nn.Module, dict[str, Tensor | None]]] = []

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the statistics of the pass made in this block, and the buffers it changes."""
        before = [(m, {k: _state(b) for k, b in m._buffers.items()}) for m in self._owners]
        with replaced(
            [(n, _recording(n, s)) for n, s in zip(self._norms, self._seen, strict=True)]
        ):
            yield
        for module, states in before:
            now = module._buffers
            changed = {k: s.value for k, s in states.items() if s.differs(now.get(k))}
            if changed:
                self._before.append((module, changed))

    def held(self, head: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """Return the same head, with the recorded statistics and buffers; it changes no buffer."""
        if not self._norms and not self._before:
            return head

        def still(features: Tensor) -> Tensor:
            pairs = zip(self._norms, self._seen, strict=True)
            norms = replaced([(norm, _holding(norm, seen)) for norm, seen in pairs])
            with norms, self._buffers():
                return head(features)

        return still

    @contextlib.contextmanager
    def _buffers(self) -> Iterator[None]:
        """Put copies of the recorded buffers in the place of those that changed since."""
        after = [(module, dict(module._buffers)) for module, _ in self._before]
        try:
            for module, changed in self._before:
                # Copied in the pass itself: torch lets it change no tensor from outside in place.
                copies = {k: v if v is None else v.clone() for k, v in changed.items()}
                module._buffers.update(copies)
            yield
        finally:
            for module, buffers in after:
                module._buffers.update(buffers)


@dataclass(frozen=True)
class _State:
    """A buffer before a pass: itself, how often it was written, and a copy."""

    buffer: Tensor | None
    version: int | None
    value: Tensor | None

    def differs(self, now: Tensor | None) -> bool:
        """Return whether the buffer has been written or replaced since."""
        if now is None or now is not self.buffer:
            return now is not self.buffer
        return self.version is None or now._version != self.version


def _state(buffer: Tensor | None) -> _State:
    if buffer is None:
        return _State(None, None, None)
    # Writes to an inference tensor are not counted: it is taken for changed.
    version = None if buffer.is_inference() else buffer._version
    return _State(buffer, version, buffer.detach().clone())


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
