"""The cells of Table 1: one for each data set, method and solver."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from augury_paper.cells import Bench, Cell
from augury_paper.settings import Settings
from augury_paper.table1.closed import by_closed_form
from augury_paper.table1.descent import by_descent
from augury_paper.table1.tasks import HELD_OUT, METHODS, PRINTED, TASKS

SOLVERS = {"descent": by_descent, "closed": by_closed_form}
_PAIR_MOST = 10_000  # images whose views scikit-learn can hold as features


def cells(settings: Settings) -> list[Cell]:
    """Plan the table: the paper's methods by its own descent, and all methods in closed form."""
    return [
        Cell(
            "table1",
            f"{dataset}-{method}-{solver}",
            dataset,
            {"method": method, "solver": solver, **_matters(dataset, method, solver, settings)},
            partial(_run, dataset, method, solver, settings),
        )
        for dataset in settings.datasets
        if dataset in TASKS
        for solver in SOLVERS
        for method in (PRINTED if solver == "descent" else METHODS)
        if _applies(method, dataset, settings)
    ]


def _applies(method: str, dataset: str, settings: Settings) -> bool:
    task = TASKS[dataset]
    if method == "equal":  # else it is what "augmented" is
        return task.n_nodes(settings) < task.n_views(settings)
    return method != "sklearn" or 0 < settings.examples <= _PAIR_MOST


def _run(
    dataset: str, method: str, solver: str, settings: Settings, bench: Bench
) -> dict[str, Any]:
    return SOLVERS[solver](bench, dataset, method, settings)


def _matters(dataset: str, method: str, solver: str, settings: Settings) -> dict[str, Any]:
    """Return what the numbers depend on."""
    unused = {"datasets", "falling", "together"}
    if solver == "closed":
        unused |= {"learning_rate", "momentum", "batch_size", "epochs"}
    plain = {name: value for name, value in asdict(settings).items() if name not in unused}
    size = {} if solver == "closed" else {"size": settings.size}
    task = asdict(TASKS[dataset])
    del task["least"]
    if solver == "closed" and method in HELD_OUT:
        task["ridges"] = list(TASKS[dataset].ridges)
    return plain | size | task
