"""Fit a kernel model to examples in shards: the sums of a shard are a job."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from augury import __version__
from augury._base.devices import resolve_device, tensor_cores
from augury._base.errors import AuguryError
from augury.cluster import Cluster, Journal, Tensors, Workers, open_workers
from augury.data.stream import Stream
from augury.kernel.solvers.batches import Batches
from augury.kernel.solvers.gram import RawSums, collect, finish
from augury.kernel.solvers.ridge import RidgeSolution, dtype_of_sums, solve_sums

if TYPE_CHECKING:
    from augury.kernel.base import KernelModel

ROWS = 8192
"""Examples in memory that are one shard on a cluster."""


@dataclass(frozen=True)
class Streamed:
    """Examples in shards, the targets that their labels stand for, and who goes through them.

    Attributes
    ----------
    stream
        The examples.
    table
        ``(classes, C)``: the centred targets of each class; None where labels are numbers.
    mean, scale
        Of numbers, which they are brought to.
    """

    stream: Stream
    table: Tensor | None = None
    mean: float = 0.0
    scale: float = 1.0
    workers: Workers = field(default_factory=Workers)
    journal: Journal = field(default_factory=Journal)

    def targets(self, y: Tensor) -> Tensor:
        """Return the targets ``(b, C)`` of labels."""
        if self.table is not None:
            return self.table[y.long()]
        return ((y.double() - self.mean) / self.scale).unsqueeze(1)

    def solve(
        self, model: KernelModel, *, short: bool, progress: Callable[[int, int], None]
    ) -> RidgeSolution:
        """Sum over all shards in their order, and solve; memory holds some Gram matrices."""
        like = model._psi.weights
        assert like is not None
        shards = self.stream.shards
        done = 0

        def tick(name: str) -> None:
            nonlocal done
            done += 1
            progress(round(done / len(shards) * len(self.stream)), len(self.stream))

        plain = Streamed(self.stream, self.table, self.mean, self.scale)  # what a job needs
        results = self.workers.map(
            sum_shard,
            (model, plain, short),
            {f"sums of shard {k}{' in short floats' if short else ''}": k for k in shards},
            journal=self.journal,
            tick=tick,
            each=like.element_size() * model._d**2,
        )
        total: RawSums | None = None
        for result in results:
            sums = RawSums(*(part.to(like.device) for part in result))
            total = sums if total is None else total.add_(sums)
        assert total is not None  # a stream has examples
        sums = finish(total, len(self.stream), total.y.shape[1])
        return solve_sums(sums, like.dtype, ridge=model.ridge, raising=not short, seed=model.seed_)


@torch.no_grad()
def sum_shard(shared: tuple[KernelModel, Streamed, bool], shard: int) -> Tensors:
    """Return the sums of a shard, block by block: memory holds one Gram matrix and a block."""
    model, data, short = shared
    psi = model._psi.to(resolve_device(model.device))
    like = psi.weights
    assert like is not None
    total: RawSums | None = None
    for index, block in data.stream.blocks(shard, like.device):
        x, first = block.x, int(index[0])
        x = x.reshape(len(x), *model.shape_)
        y = data.targets(block.y).to(like)
        batches = Batches(model.maker(x, first, len(data.stream)), y, size=model.block_size())
        with tensor_cores(short):
            total = collect(
                batches,
                gram=True,
                dtype=dtype_of_sums(model._d),
                seed=model.seed_,
                start=first,
                total=len(data.stream),
                into=total,
            )
    assert total is not None  # a shard has examples
    return tuple(total)


def check_once(loss: str) -> None:
    """Raise if a loss needs the examples more than once."""
    if loss != "quadratic":
        raise AuguryError(
            f"the {loss} loss goes through the examples many times; use the quadratic loss with "
            "shards or a cluster"
        )


@contextlib.contextmanager
def streamed(
    model: KernelModel,
    stream: Stream,
    cluster: Cluster,
    journal: str | Path | None,
    *,
    table: Tensor | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
) -> Iterator[Streamed]:
    """Connect to who goes through the shards: without a cluster one after the other, here."""
    here = Workers(1, threads=torch.get_num_threads())
    with open_workers(here if cluster is None else cluster, model.device) as workers:
        kept = Journal()
        if journal is not None:
            settings = {name: str(value) for name, value in model.get_params().items()}
            key = {"version": __version__, "data": stream.digest(), **settings}
            kept = Journal.open(journal, key)
        yield Streamed(stream, table, mean, scale, workers, kept)
