"""Train models on f, g, ĝ, g̃ and f + g̃ − ĝ at once, and see how far they come apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from augury._base.devices import tensor_cores
from augury.data.dataset import Dataset
from augury.features.orbit import Orbit
from augury.objectives import (
    Objective,
    exact,
    first_order,
    multinomial,
    original,
    second_order,
    second_order_only,
)
from augury_paper.approximation.bases import Base
from augury_paper.settings import Settings
from augury_paper.sgd import batch_order, learning_rates
from augury_paper.sgd import train as descend
from augury_paper.views import Pool

OBJECTIVES: dict[str, Objective] = {
    "exact": exact,
    "first": first_order,
    "second": second_order,
    "second_only": second_order_only,
    "original": original,  # the last: it needs no views
}
"""What models are trained on, in the order of a base's outputs."""


def objectives(
    seen: Tensor, plain: Tensor, weights: Tensor, y: Tensor
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Return the sum of all models' training losses, and all objectives at the model of g.

    The head is linear, so that the orbit of its outputs says all that the orbit of features does:
    their mean is the output of ψ, their deviations are those of the features pushed through it.

    Parameters
    ----------
    seen, plain
        Outputs of views ``(n·b, 4, trials, C)`` and of examples ``(b, 5, trials, C)``, in the
        order of `OBJECTIVES`.
    weights, y
        Of the views, ``(n,)``; classes ``(b,)``.

    Returns
    -------
    loss, differences, distances
        One number; and the means over the batch ``(trials,)`` of g itself (``"exact"``) and of
        each other objective's difference from it, and of the size of each example's difference,
        in which differences of opposite sign do not cancel. In double precision.
    """
    b, trials, weights = len(y), plain.shape[2], weights.to(plain)
    labels = y.unsqueeze(1).expand(b, trials).flatten()

    def orbit(k: int) -> Orbit:
        origin = plain[:, k].flatten(0, 1)
        if k == seen.shape[1]:
            return Orbit(origin.unsqueeze(0), weights[:1], origin)
        views = seen[:, k].unflatten(0, (len(weights), b)).flatten(1, 2)
        return Orbit(views, weights, origin)

    losses = [
        objective(_as_it_is, orbit(k), labels, multinomial).sum()
        for k, objective in enumerate(OBJECTIVES.values())
    ]
    with torch.no_grad():
        each = {
            name: objective(_as_it_is, orbit(0), labels, multinomial).double()
            for name, objective in OBJECTIVES.items()
        }
        g = each["exact"]
        apart = {name: (value - g).view(b, trials) for name, value in each.items()}
        differences = {name: value.mean(0) for name, value in apart.items()}
        differences["exact"] = g.view(b, trials).mean(0)
        distances = {name: value.abs().mean(0) for name, value in apart.items()}
    return torch.stack(losses).sum() / b, differences, distances


def _as_it_is(output: Tensor) -> Tensor:
    return output


def train(
    base: Base,
    pool: Pool,
    test: Dataset,
    settings: Settings,
    tick: Callable[[float, str], None],
    *,
    weight_decay: float = 0.0,
) -> dict[str, Any]:
    """Train all models of a base together by SGD; all of them see the same batches.

    The paper names no weight decay.

    Returns
    -------
    found
        ``objective``: at the weights of the model that trains on g, the mean of g over an epoch
        (``exact``) and the other objectives' differences from it; ``distance``: the mean size of
        such differences, example by example. ``kl``, ``accuracy``: of each model's test
        predictions after an epoch, KL(model of g ‖ model) and the share of right ones. All as
        lists by trial, each a list by epoch.
    """
    device = pool.x.device
    dtype, epochs = next(base.parameters()).dtype, settings.epochs
    order = batch_order(len(pool.x), settings.batch_size, epochs, 0, device)
    sums = torch.zeros(2, len(OBJECTIVES), base.trials, dtype=torch.float64, device=device)
    curve, tests = [], []

    def loss(rows: Tensor, step: Tensor) -> Tensor:
        views = pool.views[:, rows].flatten(0, 1).to(dtype) / 255
        seen, plain = base(views, pool.x[rows].to(dtype) / 255)
        value, *both = objectives(seen, plain, pool.weights, pool.y[rows])
        sums.add_(torch.stack([torch.stack(list(values.values())) for values in both]))
        return value

    def end(epoch: int) -> None:
        curve.append(sums / (len(order) // epochs))
        sums.zero_()
        tests.append(_test(base, test))

    with tensor_cores(device.type == "cuda"):
        took = descend(
            base,
            loss,
            order,
            learning_rates(order, settings.learning_rate),
            epochs=epochs,
            momentum=settings.momentum,
            weight_decay=weight_decay,
            changed=[sums],
            end=end,
            tick=lambda share: tick(share, f"epoch {math.ceil(share * epochs)} of {epochs}"),
        )
    values = torch.stack(curve).cpu()
    found = {key: torch.stack([t[key] for t in tests]).cpu() for key in tests[0]}
    named = {"objective": values[:, 0], "distance": values[:, 1], **found}
    lists = {
        key: {name: _rounded(value[:, k].T) for k, name in enumerate(OBJECTIVES)}
        for key, value in named.items()
    }
    return {**lists, "training_seconds": took}


@torch.no_grad()
def _test(base: Base, test: Dataset) -> dict[str, Tensor]:
    """Compare the models' predictions with those of the model of g: ``(5, trials)`` each."""
    like = next(base.parameters())
    device = like.device
    total: dict[str, Tensor] = {}
    for index in torch.arange(len(test)).split(2000):
        # A divergence is the small difference of large sums: in double precision.
        logs = base.predict(test.batch(index, device, like.dtype)).double().log_softmax(-1)
        true, chosen = logs[:, :1], logs.argmax(-1)
        y = test.y[index].to(device)[:, None, None]
        part = {
            "kl": (true.exp() * (true - logs)).sum((0, -1)),
            "accuracy": (chosen == y).sum(0),
        }
        total = {key: value + total.get(key, 0) for key, value in part.items()}
    return {key: value / len(test) for key, value in total.items()}


def _rounded(values: Tensor) -> list[list[float]]:
    """Return four digits, as many as a result is good for."""
    return [[float(f"{v:.4g}") for v in row] for row in values.tolist()]
