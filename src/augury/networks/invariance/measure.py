"""Measure how invariant each layer of a network is, in one pass over data."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from augury._base.devices import HALF_FLOATS
from augury._base.errors import AuguryError
from augury._base.given import as_batch
from augury._base.progress import Tick, ticking, with_progress
from augury._base.rng import Rng
from augury.augmentations import Augmentation, parse
from augury.data import Dataset
from augury.features.orbit import Orbit
from augury.networks.invariance.statistic import Invariance
from augury.networks.layers.find import check_runs, match_layers
from augury.networks.layers.read import default_layers, read_layers
from augury.results.invariance import InvarianceProfile, LayerInvariance
from augury.statistics import jackknife

# Inputs run at once by default, views and originals together: at most this many rows and values.
# Fewer on a CPU, whose cache the activations of a few large images leave.
_ROWS = 512
_VALUES = {"cuda": 1 << 24, "cpu": 1 << 22}


@with_progress("measuring")
def measure_invariance(
    network: nn.Module,
    x: Dataset | Tensor | np.ndarray,
    augmentations: Iterable[str | Augmentation] | str | Augmentation,
    *,
    layers: Sequence[str] | None = None,
    n_views: int = 16,
    seed: int = 0,
    batch_size: int | None = None,
    name: str = "",
    progress: Tick | bool | None = None,
    command: str = "",
) -> InvarianceProfile:
    """Measure how far augmentations move the features of each layer of a network.

    Only sums are kept, no activations: memory does not depend on the number of examples, and the
    result does not depend on the batch size.

    Parameters
    ----------
    network
        The network, in eval mode, on the device where it is to run.
    x
        Examples: a `Dataset`, or inputs ``(N, *shape)`` as the network takes them.
    augmentations
        Augmentations or specs such as ``"rotation(15)"``.
    layers
        Names of layers, or patterns such as ``"layer1.*"``; by default the layers that cut the
        network in two, with residual blocks whole.
    n_views
        Number of views of each example; finite families use all of theirs.
    seed
        Random seed of the views.
    batch_size
        Examples per batch; by default chosen from the size of an example.
    name
        Name of the network in the result; its class by default.
    progress
        Called with (done, total, augmentation) as work goes on; True for a bar, False for none. By
        default a notebook shows a bar.
    command
        The command that repeats this, for the report.

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
    data = _Inputs(x, network)
    name = name or type(network).__name__
    _check(network, data, chosen, n_views)
    pair = data.batch(torch.arange(2))
    check_runs(network, pair, name)
    names = default_layers(network, pair) if layers is None else match_layers(network, layers)
    values = _VALUES.get(data.device.type, _VALUES["cuda"])
    most = min(_ROWS, values // math.prod(data.shape))
    batches = torch.arange(len(data)).split(batch_size or max(1, most // (n_views + 1)))
    rows: list[LayerInvariance] = []
    tick = ticking(progress)
    with torch.no_grad():
        for k, augmentation in enumerate(chosen):
            found = {layer: Invariance() for layer in names}
            for done, index in enumerate(batches):
                _add(network, data.batch(index), index, augmentation, n_views, seed, found)
                tick(k * len(batches) + done + 1, len(chosen) * len(batches), repr(augmentation))
            rows += [_row(layer, augmentation, found[layer]) for layer in names]
    return InvarianceProfile(
        rows=tuple(rows),
        network=name,
        dataset=data.about,
        n_views=n_views,
        seed=seed,
        seconds=round(time.perf_counter() - started, 3),
        command=command,
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


def _check(
    network: nn.Module, data: _Inputs, augmentations: list[Augmentation], n_views: int
) -> None:
    if not augmentations:
        raise AuguryError("expected at least one augmentation, such as rotation(15)")
    if n_views < 1:
        raise AuguryError(f"n_views must be 1 or more, not {n_views}")
    if network.training:
        raise AuguryError(
            "the network is in training mode, where its features depend on the rest of the batch "
            "and on chance: call network.eval() first"
        )
    if len(data) < 2:
        raise AuguryError("invariance needs two examples or more, to know how far apart they are")
    for augmentation in augmentations:
        augmentation.check(data.shape)


class _Inputs:
    """Examples as a network takes them, from a data set or from arrays."""

    def __init__(self, x: Any, network: nn.Module) -> None:
        like = next((p for p in network.parameters() if p.is_floating_point()), torch.empty(0))
        self.device, self.dtype = like.device, like.dtype
        if isinstance(x, Dataset):
            self.data = x
            self.about = {"name": x.name, "kind": x.kind, "notes": list(x.notes)}
        else:
            tensor = as_batch(x)
            self.data = Dataset(tensor, torch.zeros(len(tensor)), None)
            self.about = {"name": "data", "kind": None, "notes": []}
        self.about |= {"examples": len(self), "shape": list(self.shape)}

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def __len__(self) -> int:
        return len(self.data)

    def batch(self, index: Tensor) -> Tensor:
        return self.data.batch(index, self.device, self.dtype)
