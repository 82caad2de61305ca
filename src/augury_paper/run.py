"""Run the experiments cell by cell, and write their results and page after each."""

from __future__ import annotations

import gc
import importlib
import json
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch

import augury
from augury._base.devices import resolve_device
from augury._base.errors import AuguryError
from augury._base.files import write
from augury_paper.cells import Bench, Cell
from augury_paper.download import REMOTES, download
from augury_paper.errata import ERRATA
from augury_paper.images import Library, default_folder
from augury_paper.machine import commit, machine
from augury_paper.page import Facts, to_html
from augury_paper.section import Section
from augury_paper.settings import PAPER, Settings
from augury_paper.store import Store

EXPERIMENTS = ("table1", "approximation", "alignment", "averaging", "invariance", "chain")
"""The experiments, in the order of the page; each is a module of this package."""


class Experiment(Protocol):
    """What the module of an experiment holds."""

    def cells(self, settings: Settings) -> list[Cell]: ...
    def section(self, results: dict[str, dict[str, Any]], settings: Settings) -> Section: ...


@dataclass
class Outcome:
    """The outcome of a run: its page, and what could not be done, one line each."""

    page: Path
    computed: int = 0
    kept: int = 0
    missing: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def reproduce(
    experiments: Sequence[str] = EXPERIMENTS,
    *,
    out: Path,
    settings: Settings = PAPER,
    data: Path | None = None,
    device: str = "auto",
    fetch: bool = False,
    only: str | Sequence[str] = (),
    progress: Callable[[int, int, str], None] = lambda done, total, now: None,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Compute the cells of the paper's experiments that are missing, and write ``OUT/page.html``.

    Parameters
    ----------
    experiments
        Which experiments, of `EXPERIMENTS`.
    out
        A folder: finished cells are kept in ``cells/``, all numbers in ``results.json``. A run
        that was stopped is resumed when it is started again with the same folder.
    settings
        How they are run; `QUICK` for a look, `PAPER` for the paper's own.
    data
        The folder with the data sets.
    device
        ``"auto"``, ``"cpu"`` or ``"cuda"``.
    fetch
        Download the data sets that are missing.
    only
        Compute only the cells whose name contains this, or one of these.
    progress
        Called with (done, total, what is being done), in thousandths of a cell.
    say
        Called with messages for the user: what is missing, what failed.
    """
    if unknown := [name for name in experiments if name not in EXPERIMENTS]:
        known = ", ".join(EXPERIMENTS)
        raise AuguryError(f"there is no experiment {unknown[0]!r}; choose from {known}")
    where = resolve_device(device)
    folder = default_folder() if data is None else Path(data).expanduser()
    library, store = Library(folder, settings), Store(Path(out) / "cells")
    outcome = Outcome(Path(out) / "page.html")
    try:
        store.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AuguryError(f"cannot make the folder {store.folder}: {error.strerror}") from None
    if fetch:
        _fetch(settings.datasets, library, progress, say)
    chosen = [name for name in EXPERIMENTS if name in experiments]
    parts = [only] if isinstance(only, str) else list(only) or [""]
    planned = {
        name: [
            c for c in _experiment(name).cells(settings) if any(part in c.name for part in parts)
        ]
        for name in chosen
    }
    todo = _todo(planned, library, store, outcome, say)
    total = 1000 * sum(len(cells) for cells in todo.values())
    progress(0, total, "")
    for name in planned:
        for cell in todo[name]:
            done = 1000 * (outcome.computed + len(outcome.failed))

            def tick(share: float, words: str, cell: Cell = cell, done: int = done) -> None:
                at = done + int(1000 * min(max(share, 0.0), 1.0))
                progress(at, total, f"{cell.experiment} {cell.name}: {words}")

            tick(0.0, "begins")
            _compute(cell, Bench(where, library.images, tick), library, store, outcome, say)
        _publish(experiments, Path(out), settings, library, store)
    progress(total, total, "done")
    return outcome


def _fetch(
    datasets: Iterable[str],
    library: Library,
    progress: Callable[[int, int, str], None],
    say: Callable[[str], None],
) -> None:
    for name in datasets:
        if name in REMOTES and (library.missing(name) or library.source(name) != name):
            say(f"downloading {name} into {library.folder}")
            try:
                download(name, library.folder, progress)
            except AuguryError as error:  # the rest can go on without it
                say(str(error))


def _todo(
    planned: dict[str, list[Cell]],
    library: Library,
    store: Store,
    outcome: Outcome,
    say: Callable[[str], None],
) -> dict[str, list[Cell]]:
    """Return the cells to compute: not finished, and with their data; report missing data."""
    todo: dict[str, list[Cell]] = {name: [] for name in planned}
    for name, cells in planned.items():
        for cell in cells:
            if _kept(cell, library, store) is not None:
                outcome.kept += 1
            elif reason := library.missing(cell.dataset):
                if reason not in outcome.missing:
                    outcome.missing.append(reason)
                    say(reason)
            else:
                todo[name].append(cell)
    return todo


def _kept(cell: Cell, library: Library, store: Store) -> dict[str, Any] | None:
    """Return the record of a cell that was computed on the data as they are now."""
    source = library.source(cell.dataset)
    if not store.path(cell, source).exists():
        return None  # reading the data set would be wasted
    return store.read(cell, source, library.fingerprint(cell.dataset))


def _compute(
    cell: Cell,
    bench: Bench,
    library: Library,
    store: Store,
    outcome: Outcome,
    say: Callable[[str], None],
) -> None:
    """Run one cell and keep its numbers; a failure is one line, and the rest goes on."""
    started = time.perf_counter()
    warned: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as warned:
            result = cell.run(bench)
    except Exception as error:  # whatever an experiment may raise: the others go on
        words = " ".join(str(error).split())[:200] or type(error).__name__
        line = f"{cell.experiment} {cell.name} failed: {words}"
        outcome.failed.append(line)
        say(line)
        return
    finally:
        for words in dict.fromkeys(" ".join(str(each.message).split()) for each in warned):
            say(f"{cell.experiment} {cell.name}: {words}")
        gc.collect()
        if bench.device.type == "cuda":
            torch.cuda.empty_cache()
    about = {
        "seconds": round(time.perf_counter() - started, 3),
        "machine": machine(bench.device),
        "augury": augury.__version__,
        "commit": commit(),
    }
    data = library.fingerprint(cell.dataset)
    store.write(cell, library.source(cell.dataset), data, result, about)
    outcome.computed += 1


def _publish(
    experiments: Sequence[str], out: Path, settings: Settings, library: Library, store: Store
) -> None:
    """Write results and page from what the store holds, of all data sets and experiments.

    An experiment that was not asked for now is shown if some of it was computed before.
    """
    every = replace(settings, datasets=PAPER.datasets)
    records: list[dict[str, Any]] = []
    shown = []
    for name in EXPERIMENTS:
        found = [
            record
            for cell in _experiment(name).cells(every)
            if (record := _kept(cell, library, store)) is not None
        ]
        if found or name in experiments:
            shown.append(name)
        records += found
    seconds: dict[str, float] = {}
    for record in records:
        seconds[record["dataset"]] = seconds.get(record["dataset"], 0.0) + record["seconds"]
    results = {
        "settings": asdict(every),
        "experiments": shown,
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "cells": records,
    }
    write(out / "results.json", json.dumps(results, indent=1) + "\n")
    write(out / "page.html", make_page(results))


def sections(results: dict[str, Any]) -> list[Section]:
    """Turn the numbers of ``results.json`` into what the page shows."""
    settings = settings_of(results)
    return [
        _experiment(name).section(
            {
                r["name"]: {**r["result"], "machine": r["machine"]}
                for r in results["cells"]
                if r["experiment"] == name
            },
            settings,
        )
        for name in results["experiments"]
    ]


def settings_of(results: dict[str, Any]) -> Settings:
    """Return the settings that results were computed with."""
    return Settings(**{**results["settings"], "datasets": tuple(results["settings"]["datasets"])})


def make_page(results: dict[str, Any]) -> str:
    """Write the page of ``results.json``: a pure function of it."""
    settings = settings_of(results)
    sources = sorted({(r["dataset"], r["source"]) for r in results["cells"]})
    facts = Facts(
        settings={name: value for name, value in asdict(settings).items() if name != "datasets"},
        paper=settings == replace(PAPER, trials=settings.trials),
        machines=sorted({record["machine"] for record in results["cells"]}),
        replaced=[f"{source} stood in for {name}" for name, source in sources if name != source],
        cells=len(results["cells"]),
        seconds=results["seconds"],
    )
    return to_html(sections(results), facts, ERRATA, results)


def _experiment(name: str) -> Experiment:
    return importlib.import_module(f"augury_paper.{name}")  # type: ignore[return-value]  # modules fit the protocol
