"""Train models on f, g, ĝ, g̃ and f + g̃ − ĝ at once, and see how far they come apart."""

from __future__ import annotations

import time
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
from augury_paper.pool import Pool
from augury_paper.recorded import orders, recorded
from augury_paper.settings import Settings

OBJECTIVES: dict[str, Objective] = {
    "exact": exact,
    "first": first_order,
    "second": second_order,
    "second_only": second_order_only,
    "original": original,  # the last: it needs no versions
}
"""What models are trained on, in the order of a base's outputs."""


def objectives(
    seen: Tensor, plain: Tensor, weights: Tensor, y: Tensor
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Give the sum of all models' training losses, and all objectives at the model of g.

    The head is linear, so that the orbit of its outputs says all that the orbit of features does:
    their mean is the output of ψ, their deviations are those of the features pushed through it.

    Parameters
    ----------
    seen, plain
        Outputs of versions ``(n·b, 4, trials, C)`` and of examples ``(b, 5, trials, C)``, in the
        order of `OBJECTIVES`.
    weights, y
        Of the versions, ``(n,)``; classes ``(b,)``.

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
        versions = seen[:, k].unflatten(0, (len(weights), b)).flatten(1, 2)
        return Orbit(versions, weights, origin)

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
    decay: float = 0.0,
) -> dict[str, Any]:
    """Train all models of a base together by SGD; all of them see the same batches.

    With a weight decay, if any; the paper names none.

    Returns
    -------
    found
        ``objective``: at the weights of the model that trains on g, the mean of g over an epoch
        (``exact``) and the other objectives' differences from it; ``distance``: the mean size of
        such differences, example by example. ``kl``, ``disagreement``,
        ``accuracy``: of each model's test predictions after an epoch: KL(model of g ‖ model), the
        share of other classes, the share of right ones. All as lists by trial, each a list by
        epoch.
    """
    device = pool.x.device
    dtype, fast = next(base.parameters()).dtype, device.type == "cuda"
    order = orders(len(pool.x), settings.batch, settings.epochs, 0, device)
    counter = torch.zeros(1, dtype=torch.int64, device=device)
    sums = torch.zeros(2, len(OBJECTIVES), base.trials, dtype=torch.float64, device=device)
    optimizer = torch.optim.SGD(
        base.parameters(),
        settings.rate,
        momentum=settings.momentum,
        weight_decay=decay,
        fused=fast,
    )

    def step() -> None:
        rows = order.index_select(0, counter).squeeze(0)
        counter.add_(1)
        versions = pool.versions[:, rows].flatten(0, 1).to(dtype) / 255
        seen, plain = base(versions, pool.x[rows].to(dtype) / 255)
        loss, *both = objectives(seen, plain, pool.weights, pool.y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums.add_(torch.stack([torch.stack(list(values.values())) for values in both]))

    per_epoch = len(order) // settings.epochs
    curve, tests = [], []
    with tensor_cores(fast):
        run = recorded(step, optimizer, [*base.parameters(), counter, sums], device)
        started = time.perf_counter()
        for done in range(1, len(order) + 1):
            run()
            if done % per_epoch == 0:
                curve.append(sums / per_epoch)
                sums.zero_()
                tests.append(_test(base, test))
            if done % 20 == 0 or done == len(order):
                tick(done / len(order), f"epoch {-(-done // per_epoch)} of {settings.epochs}")
        values = torch.stack(curve).cpu()  # waits for the device
        found = {key: torch.stack([t[key] for t in tests]).cpu() for key in tests[0]}
        took = time.perf_counter() - started
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
            "disagreement": (chosen != chosen[:, :1]).sum(0),
            "accuracy": (chosen == y).sum(0),
        }
        total = {key: value + total.get(key, 0) for key, value in part.items()}
    return {key: value / len(test) for key, value in total.items()}


def _rounded(values: Tensor) -> list[list[float]]:
    """Give six digits, more than a result is good for."""
    return [[float(f"{v:.6g}") for v in row] for row in values.tolist()]
