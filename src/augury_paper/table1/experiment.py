"""The cells of Table 1: a data set, a way and a solver each."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from augury_paper.cells import Bench, Cell
from augury_paper.settings import Settings
from augury_paper.table1.closed import by_closed_form
from augury_paper.table1.descent import by_descent
from augury_paper.table1.tasks import TASKS, WAYS

SOLVERS = {"descent": by_descent, "closed": by_closed_form}


def cells(settings: Settings) -> list[Cell]:
    """Plan the table: every way by the closed form, and the paper's three by its own descent."""
    return [
        Cell(
            "table1",
            f"{dataset}-{way}-{solver}",
            dataset,
            {"way": way, "solver": solver, **_matters(dataset, settings, solver)},
            partial(_run, dataset, way, solver, settings),
        )
        for dataset in settings.datasets
        if dataset in TASKS
        for solver in SOLVERS
        for way in WAYS
        if way != "tangent" or solver == "closed"
    ]


def _run(dataset: str, way: str, solver: str, settings: Settings, bench: Bench) -> dict[str, Any]:
    return SOLVERS[solver](bench, dataset, way, settings)


def _matters(dataset: str, settings: Settings, solver: str) -> dict[str, Any]:
    """Give what the numbers depend on."""
    steps = ("rate", "momentum", "batch", "epochs")  # which the closed form does not take
    unused = ("datasets", *(steps if solver == "closed" else ()))
    plain = {name: value for name, value in asdict(settings).items() if name not in unused}
    size = {} if solver == "closed" else {"size": settings.size}
    return plain | size | asdict(TASKS[dataset])
