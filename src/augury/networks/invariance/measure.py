"""Measure how invariant each layer of a network is, in one pass over data."""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from augury import __version__
from augury._base.devices import HALF_FLOATS
from augury._base.errors import AuguryError
from augury._base.given import as_batch, as_seed, as_whole
from augury._base.limits import MOST_VIEWS
from augury._base.progress import Tick, ticking, with_progress
from augury._base.rng import Rng
from augury.augmentations import Augmentation, parse
from augury.cluster import Cluster, Journal, Tensors, Workers, open_workers
from augury.data import Dataset, InMemory, Shards, Stream
from augury.features.orbit import Orbit
from augury.networks.digest import digest_network
from augury.networks.invariance.statistic import Invariance
from augury.networks.layers.find import check_network, check_runs, match_layers
from augury.networks.layers.read import default_layers, read_layers
from augury.results.invariance import InvarianceProfile, LayerInvariance
from augury.statistics import jackknife

# Inputs run at once by default, views and originals together: at most this many rows and values.
# Fewer on a CPU, whose cache the activations of a few large images leave.
_ROWS = 512
_VALUES = {"cuda": 1 << 24, "cpu": 1 << 22}
_SHARD = 256  # examples in memory that are one job


@with_progress("measuring")
def measure_invariance(
    network: nn.Module,
    x: Dataset | Shards | Tensor | np.ndarray,
    augmentations: Iterable[str | Augmentation] | str | Augmentation,
    *,
    layers: Sequence[str] | None = None,
    n_views: int = 16,
    seed: int = 0,
    batch_size: int | None = None,
    name: str = "",
    cluster: Cluster = None,
    journal: str | Path | None = None,
    progress: Tick | bool | None = None,
    command: str = "",
) -> InvarianceProfile:
    """Measure how far augmentations move the features of each layer of a network.

    Only sums are kept, no activations: memory does not depend on the number of examples, and the
    result does not depend on the batch size.

    Parameters
    ----------
    network
        The network, in eval mode, on the device on which to run it.
    x
        Examples: a `Dataset`, the result of `augury.open_shards`, or inputs ``(N, *shape)`` for the
        network.
    augmentations
        Augmentations or specs such as ``"rotation(15)"``.
    layers
        Names of layers, or patterns such as ``"layer1.*"``; by default the layers that cut the
        network in two, with residual blocks whole.
    n_views
        Number of views of each example; finite families use all their views.
    seed
        Random seed of the views.
    batch_size
        Examples per batch; by default chosen from the size of an example.
    name
        Name of the network in the result; its class by default.
    cluster, journal
        Where to run (by default, in this process), and where to save finished jobs: see
        `augury.rank`.
    progress
        Called with (done, total, augmentation) as work progresses; True for a progress bar, False
        for none. By default, a notebook shows a bar.
    command
        The command that repeats the measurement, for the report.

    Examples
    --------
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU()).eval()
    >>> found = measure_invariance(network, torch.rand(8, 1, 6, 6), "identity")
    >>> [(row.layer, row.relative) for row in found.rows]
    [('input', 0.0), ('0', 0.0), ('1', 0.0)]
    """
    started = time.perf_counter()
    given = [augmentations] if isinstance(augmentations, str | Augmentation) else augmentations
    chosen = list(dict.fromkeys(parse(a) for a in given))
    check_network(network)
    data = _Inputs(x, network)
    name = name or type(network).__name__
    n_views, seed = as_whole("n_views", n_views, 1, MOST_VIEWS), as_seed(seed)
    batch_size = batch_size if batch_size is None else as_whole("batch_size", batch_size, 1)
    _check(network, data, chosen)
    pair = data.some.batch(torch.arange(2), data.device, data.dtype)
    check_runs(network, pair, name)
    names = default_layers(network, pair) if layers is None else match_layers(network, layers)
    values = _VALUES.get(data.device.type, _VALUES["cuda"])
    most = min(_ROWS, values // math.prod(data.some.shape))
    task = Task(
        network, data.stream, tuple(names), n_views, seed,
        batch_size or max(1, most // (n_views + 1)), data.dtype, device=data.device.type,
    )  # fmt: skip
    with open_workers(cluster, data.device) as workers:
        kept = Journal() if journal is None else Journal.open(journal, task.key())
        found = _sums(task, chosen, workers, kept, ticking(progress))
        rows = tuple(_row(*each) for each in found)
    return InvarianceProfile(
        rows=rows,
        network=name,
        dataset=data.about,
        n_views=n_views,
        seed=seed,
        seconds=round(time.perf_counter() - started, 3),
        command=command,
    )


def _sums(
    task: Task, augmentations: list[Augmentation], workers: Workers, journal: Journal, tick: Tick
) -> Iterator[tuple[str, Augmentation, Invariance]]:
    """Yield each layer's statistic for each augmentation, whose sums over a shard are a job."""
    programs = torch.jit.ScriptModule, torch.export.UnflattenedModule
    # a saved program cannot be copied, and a forward set on an object may call its original
    plain = not any(
        isinstance(module, programs) or "forward" in vars(module)
        for module in task.network.modules()
    )
    if workers.remote and task.device == "cuda":
        task = replace(task, network=copy.deepcopy(task.network).cpu())
    if not workers.remote and not plain:
        workers = Workers(1, threads=torch.get_num_threads())
    task = replace(task, copied=plain and (workers.remote or workers.slots > 1))
    shards = task.stream.shards
    jobs = {f"invariance to {a!r}, shard {k}": (a, k) for a in augmentations for k in shards}
    done = itertools.count(1)
    results = workers.map(
        sum_shard, task, jobs, journal=journal,
        tick=lambda job: tick(next(done), len(jobs), job.split(" to ", 1)[1]),
    )  # fmt: skip
    for augmentation in augmentations:
        parts = list(itertools.islice(results, len(shards)))
        for k, layer in enumerate(task.layers):
            own = slice(k * Invariance.parts, (k + 1) * Invariance.parts)
            yield layer, augmentation, Invariance().of(part[own] for part in parts)


@dataclass(frozen=True)
class Task:
    """What a job needs to measure a shard.

    Attributes
    ----------
    network, stream, layers, n_views, seed, batch, dtype
        As for `measure_invariance`.
    copied
        Whether a job puts its hooks on a copy of the network, since others run at the same time.
    device
        ``"cpu"`` or ``"cuda"``.
    """

    network: nn.Module
    stream: Stream
    layers: tuple[str, ...]
    n_views: int
    seed: int
    batch: int
    dtype: torch.dtype
    copied: bool = False
    device: str = "cpu"

    def key(self) -> dict[str, Any]:
        """Return what the results depend on, apart from the names of the jobs."""
        return {
            "version": __version__, "data": self.stream.digest(),
            "network": digest_network(self.network), "layers": self.layers,
            "n_views": self.n_views, "seed": self.seed, "batch": self.batch,
            "type": str(self.dtype), "device": self.device,
        }  # fmt: skip


@torch.no_grad()
def sum_shard(task: Task, job: tuple[Augmentation, int]) -> Tensors:
    """Return the sums of all layers over a shard, one layer after the other."""
    augmentation, shard = job
    network, device = task.network, torch.device(task.device)
    if task.copied:
        network = copy.deepcopy(network)
    if device.type == "cuda":
        network = network.to(device)
    found = {layer: Invariance() for layer in task.layers}
    for index, block in task.stream.blocks(shard, device):
        for rows in torch.arange(len(index)).split(task.batch):
            x = block.batch(rows, device, task.dtype)
            _check_finite(x, index[rows])
            _add(network, x, index[rows], augmentation, task.n_views, task.seed, found)
    return tuple(part for layer in task.layers for part in found[layer].sums or ())


def _check_finite(x: Tensor, index: Tensor) -> None:
    """Raise if a batch is not finite, perhaps only in the network's type."""
    finite = x.isfinite().flatten(1).all(1).cpu()
    if not finite.all():
        raise AuguryError(
            f"example {int(index[~finite][0])} of x holds values that are NaN or infinite in the "
            f"network's type, {x.dtype}; drop, repair or rescale such examples"
        )


def _add(
    network: nn.Module,
    x: Tensor,
    index: Tensor,
    augmentation: Augmentation,
    n_views: int,
    seed: int,
    found: dict[str, Invariance],
) -> None:
    """Run a batch with its views, and add the output of each layer to its statistic."""
    rng = Rng(seed, index.to(x.device))
    views, weights = augmentation.weighted_views(x, n_views, rng)
    b = len(x)

    def see(layer: str, output: Tensor) -> None:
        output = output.float() if output.dtype in HALF_FLOATS else output
        if not output.is_floating_point():
            raise AuguryError(f"the layer {layer!r} returns {output.dtype}, not real numbers")
        features = output[b:].unflatten(0, (len(weights), b))
        orbit = Orbit(features, weights.to(output.device), output[:b])
        found[layer].update(orbit, None, index.to(output.device))

    read_layers(network, torch.cat([x, views.flatten(0, 1)]), found, see)


def _row(layer: str, augmentation: Augmentation, found: Invariance) -> LayerInvariance:
    distance, relative = found.distance(), found.result()
    half = jackknife(relative.value, relative.replicates).half
    known = math.isfinite(relative.value + half)
    return LayerInvariance(
        layer,
        repr(augmentation),
        found.size,
        distance.value,
        found.between(),
        relative.value,
        max(0.0, relative.value - half) if known else None,
        relative.value + half if known else None,
    )


def _check(network: nn.Module, data: _Inputs, augmentations: list[Augmentation]) -> None:
    if not augmentations:
        raise AuguryError("expected at least one augmentation, such as rotation(15)")
    if network.training:
        raise AuguryError(
            "the network is in training mode, where its features depend on the rest of the batch "
            "and are random: call network.eval() first"
        )
    if len(data.stream) < 2:
        raise AuguryError("invariance needs at least two examples, to compare their distance")
    for augmentation in augmentations:
        augmentation.check(data.some.shape)


class _Inputs:
    """Examples as a network takes them, from shards, a data set or arrays."""

    def __init__(self, x: Any, network: nn.Module) -> None:
        like = next((p for p in network.parameters() if p.is_floating_point()), torch.empty(0))
        self.device, self.dtype = like.device, like.dtype
        self.about: dict[str, Any] = {"name": "data", "kind": None, "notes": []}
        if isinstance(x, Shards):
            self.stream: Stream = x
        else:
            self.stream = InMemory(x if isinstance(x, Dataset) else _unlabelled(x), _SHARD)
        self.some = self.stream.about
        if isinstance(x, Shards | Dataset):
            notes = list(self.some.notes)
            self.about = {"name": self.some.name, "kind": self.some.kind, "notes": notes}
        self.about |= {"examples": len(self.stream), "shape": list(self.some.shape)}


def _unlabelled(x: Any) -> Dataset:
    tensor = as_batch(x)
    return Dataset(tensor, torch.zeros(len(tensor)), None)
