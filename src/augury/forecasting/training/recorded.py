"""A step that a GPU records once and repeats: small networks wait for launches otherwise."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_WARM_UP = 3  # steps before one is recorded, in which libraries choose their kernels


class Recorded:
    """A step of training, as it is or recorded as a CUDA graph.

    Parameters
    ----------
    compute
        Computes gradients from a batch; batches have one shape, and nothing is read back from the
        device.
    wanted
        Whether to record; else every step is computed as it comes.

    Attributes
    ----------
    repeats
        Whether steps are repeated from a recording. Gradients then stay in place: each step
        overwrites them, and they must not be dropped.
    """

    def __init__(self, compute: Callable[[Tensor, Tensor], None], wanted: bool) -> None:
        self._compute, self._wanted = compute, wanted
        self._graph: torch.cuda.CUDAGraph | None = None
        self._seen = 0
        self._x: Tensor
        self._y: Tensor

    @property
    def repeats(self) -> bool:
        return self._graph is not None

    def __call__(self, x: Tensor, y: Tensor) -> None:
        if self._wanted and self._graph is None and self._seen >= _WARM_UP:
            self._record(x, y)
        if self._graph is not None:
            self._x.copy_(x)
            self._y.copy_(y)
            self._graph.replay()
            return
        self._seen += 1
        if not self._wanted:
            self._compute(x, y)
            return
        aside, here = torch.cuda.Stream(), torch.cuda.current_stream()
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            self._compute(x, y)
        here.wait_stream(aside)

    def _record(self, x: Tensor, y: Tensor) -> None:
        self._x, self._y = x.clone(), y.clone()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._compute(self._x, self._y)
            self._graph = graph
        except RuntimeError:  # what cannot be recorded, or not in this memory, goes on as it is
            torch.cuda.synchronize()
            self._wanted = False
