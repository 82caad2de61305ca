"""How invariant each layer of a network is, measured in one pass over data."""

from __future__ import annotations

import fnmatch
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from augury._base.devices import HALF_FLOATS
from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury._base.text import cause
from augury.augmentations import Augmentation, parse
from augury.data import Dataset
from augury.features.orbit import Orbit
from augury.networks.averaging.layers import INPUT, find_layer
from augury.networks.invariance.statistic import Invariance
from augury.networks.invariance.taps import default_layers, tapped
from augury.results.invariance import Cell, Profile
from augury.statistics import jackknife

# Inputs run at a time by default, versions and originals together: so many, or of so many values.
_ROWS, _VALUES = 512, 1 << 24


def profile(
    model: nn.Module,
    x: Dataset | Tensor | np.ndarray,
    augmentations: Iterable[str | Augmentation] | str | Augmentation,
    *,
    layers: Sequence[str] | None = None,
    versions: int = 16,
    seed: int = 0,
    batch_size: int | None = None,
    name: str = "",
    progress: Callable[[int, int, str], None] | None = None,
    command: str = "",
) -> Profile:
    """Measure how far augmentations move the features of each layer of a network.

    Sums are kept, no activations: memory does not depend on the number of examples, nor the
    result on the batch size.

    Parameters
    ----------
    model
        The network, in eval mode, on the device where it is to run.
    x
        Examples: a `Dataset`, or inputs ``(N, *shape)`` as the network takes them.
    augmentations
        Augmentations or specs such as ``"rotation(15)"``.
    layers
        Names of layers, or patterns such as ``"layer1.*"``; by default the layers that cut the
        network in two, with residual blocks taken whole.
    versions
        How many versions of each example; finite families use all of theirs.
    seed
        Of the versions.
    batch_size
        Examples at a time.
    name
        What the network is called in the result; its class by default.
    progress
        Called with (done, total, augmentation) as work goes on.
    command
        The command that repeats this, for the report.

    Examples
    --------
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU()).eval()
    >>> found = profile(model, torch.rand(8, 1, 6, 6), "identity")
    >>> [(cell.layer, cell.relative) for cell in found.cells]
    [('input', 0.0), ('0', 0.0), ('1', 0.0)]
    """
    started = time.perf_counter()
    given = [augmentations] if isinstance(augmentations, str | Augmentation) else augmentations
    chosen = list(dict.fromkeys(parse(a) for a in given))
    data = _Inputs(x, model)
    _check(model, data, chosen, versions)
    pair = data.batch(torch.arange(2))
    _try(model, pair, name or type(model).__name__)
    names = _names(model, layers, pair)
    rows = min(_ROWS, _VALUES // math.prod(data.shape))
    size = batch_size or max(1, rows // (versions + 1))
    batches = torch.arange(len(data)).split(size)
    cells: list[Cell] = []
    with torch.no_grad():
        for k, augmentation in enumerate(chosen):
            found = {layer: Invariance() for layer in names}
            for done, index in enumerate(batches):
                _add(model, data.batch(index), index, augmentation, versions, seed, found)
                if progress is not None:
                    progress(
                        k * len(batches) + done + 1, len(chosen) * len(batches), repr(augmentation)
                    )
            cells += [_cell(layer, augmentation, found[layer]) for layer in names]
    return Profile(
        cells=tuple(cells),
        model=name or type(model).__name__,
        dataset=data.about,
        versions=versions,
        seed=seed,
        seconds=round(time.perf_counter() - started, 3),
        command=command,
    )


def _add(
    model: nn.Module,
    x: Tensor,
    index: Tensor,
    augmentation: Augmentation,
    versions: int,
    seed: int,
    found: dict[str, Invariance],
) -> None:
    """Run a batch with its versions, and add what each layer says to its statistic."""
    rng = Rng(seed, index.to(x.device))
    seen, weights = augmentation.versions(x, versions, rng)
    b = len(x)

    def see(layer: str, output: Tensor) -> None:
        output = output.float() if output.dtype in HALF_FLOATS else output
        if not output.is_floating_point():
            raise AuguryError(f"the layer {layer!r} gives {output.dtype}, not real numbers")
        features = output[b:].unflatten(0, (len(weights), b))
        orbit = Orbit(features, weights.to(output.device), output[:b])
        found[layer].update(orbit, None, index.to(output.device))

    tapped(model, torch.cat([x, seen.flatten(0, 1)]), found, see)


def _cell(layer: str, augmentation: Augmentation, found: Invariance) -> Cell:
    distance, relative = found.distance(), found.result()
    half = jackknife(relative.value, relative.replicates).half
    known = math.isfinite(relative.value + half)
    return Cell(
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
    model: nn.Module, data: _Inputs, augmentations: list[Augmentation], versions: int
) -> None:
    if not augmentations:
        raise AuguryError("no augmentation was given; give one such as rotation(15)")
    if versions < 1:
        raise AuguryError(f"versions must be 1 or more, not {versions}")
    if model.training:
        raise AuguryError(
            "the network is in training mode, where its features depend on the rest of the batch "
            "and on chance: call model.eval() first"
        )
    if len(data) < 2:
        raise AuguryError("invariance needs two examples or more, to know how far apart they are")
    for augmentation in augmentations:
        augmentation.check(data.shape)


def _try(model: nn.Module, x: Tensor, name: str) -> None:
    """Raise if the network does not run on such a batch."""
    try:
        with torch.no_grad():
            model(x)
    except Exception as error:  # whatever a module of the user's may raise
        script = isinstance(model, torch.jit.ScriptModule)  # says the cause last, after a traceback
        reason = str(error).strip().splitlines()[-1] if script else cause(error)
        raise AuguryError(
            f"{name} cannot take a batch of shape {tuple(x.shape)} ({reason}); "
            "give a network made for this data"
        ) from error


def _names(model: nn.Module, layers: Sequence[str] | None, x: Tensor) -> list[str]:
    if layers is None:
        return default_layers(model, x)
    known = [INPUT, *(name for name, _ in model.named_modules() if name)]
    found: list[str] = []
    for pattern in [layers] if isinstance(layers, str) else layers:
        some = fnmatch.filter(known, pattern)
        if not some:
            find_layer(model, pattern)  # raises, with near names
        found += some
    return list(dict.fromkeys(found))


class _Inputs:
    """Examples as a network takes them, whatever they came as."""

    def __init__(self, x: Any, model: nn.Module) -> None:
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        self.device, self.dtype = like.device, like.dtype
        if isinstance(x, Dataset):
            self.data = x
            self.about = {"name": x.name, "kind": x.kind, "notes": list(x.notes)}
        else:
            tensor = torch.as_tensor(x)
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
