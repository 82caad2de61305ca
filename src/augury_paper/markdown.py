"""The results of a reproduction as one Markdown page, for the documentation."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from augury._base.text import listed
from augury.report.markdown import escape
from augury.report.words import count, duration
from augury_paper.claims import NOT_COMPUTED, TITLES
from augury_paper.errata import ERRATA
from augury_paper.page import lead
from augury_paper.run import EXPERIMENTS, sections, settings_of
from augury_paper.section import Plot, Section
from augury_paper.settings import CORES, CPU, FEWER

_HEAD = """# The paper, reproduced

What `augury reproduce` (see [its page](reproduction.md)) computed at the settings of the paper's
appendix. `python benchmarks/pages.py` makes this page from the committed results. A spread (±) is
the standard deviation over trials unless stated otherwise. Each section has the paper's claims
first and then checks of our own: the same claims by another method or measure.
"""

_OTHERS = {
    "fewer": (
        "Averaging at a layer, with fewer images",
        f"The same with {FEWER.examples:,} images, {{trials}} and a learning rate that "
        "falls to 0: augmentation gains more there, and the last steps add no noise, so that the "
        "share that a method keeps can be told from chance. These are not the paper's settings "
        "and do not count in the headline.",
    ),
    "cores": (
        "Averaging at a layer, on two cores of a CPU",
        f"The same with {CORES.examples:,} images, {{trials}} and batches of "
        f"{CORES.batch_size}: a size at which one random view per step, the usual practice, could "
        "be measured on CIFAR-10 in one run with the others. The shares of the time can be "
        "compared; so few images, steps and trials tell only large differences of accuracy from "
        "chance. These are not the paper's settings and do not "
        "count in the headline.",
    ),
    "cpu": (
        "Table 1 in closed form on a CPU",
        f"The same with {CPU.examples:,} training images, or with all 1,153 mammograms, and "
        "{trials}. Where images that are left out choose λ, they choose among half decades. The "
        "methods were timed one after another on a machine that did other work too, so accuracies "
        "can be relied on and ratios of times only roughly; the page on kernel methods "
        "has times of methods that took turns. These are not the paper's settings and do not "
        "count in the headline.",
    ),
}


def merge(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join results of several runs with the same settings; of two equal cells the last is taken.

    The number of trials may differ between runs, and the data sets may.
    """
    cells = {(c["experiment"], c["name"]): c for results in found for c in results["cells"]}
    seconds: dict[str, float] = {}
    for cell in cells.values():
        seconds[cell["dataset"]] = seconds.get(cell["dataset"], 0.0) + cell["seconds"]
    shown = {name for results in found for name in results["experiments"]}
    return {
        "settings": found[0]["settings"],
        "experiments": [name for name in EXPERIMENTS if name in shown],
        "seconds": seconds,
        "threads": sorted({one["environment"].get("threads", 0) for one in found} - {0}),
        "cells": list(cells.values()),
    }


def to_markdown(results: dict[str, Any], others: Mapping[str, dict[str, Any]]) -> str:
    """Write the page of the results at the paper's settings.

    Parameters
    ----------
    results
        At the paper's settings, from `merge`.
    others
        Results at other settings, by the settings' name: shown after the paper's, and not part of
        the headline.
    """
    parts = sections(results)
    times = [f"{name} {duration(took)}" for name, took in sorted(results["seconds"].items())]
    text = [_HEAD, f"**{lead(parts)}**", ""]
    text += [f"Computed on {_where(results)}. Time in all: {', '.join(times)}.", ""]
    if absent := missing(results):
        text += [f"Not computed yet: {absent}.", ""]
    for part in parts:
        text += _written(part, figures(part))
    for name, other in others.items():
        for part in sections(other):
            title, words = _OTHERS[name]
            words = words.format(trials=_trials(other))
            words = f"{words} Computed on {_where(other)}{_threads(other)}."
            claims = tuple(claim for claim in part.claims if claim.ours != NOT_COMPUTED)
            plain = replace(part, title=title, words=words, claims=claims, differences=())
            text += _written(plain, {})
    text += ["## Where we differ from the paper on purpose", ""]
    text += [
        f"{d.number}. **{escape(d.title)}** ({d.experiment}). {escape(d.words)}" for d in ERRATA
    ]
    return "\n".join(text) + "\n"


def _where(results: dict[str, Any]) -> str:
    """Name the machines, and the commits of what was computed on them."""
    where: dict[str, set[str]] = {}
    for cell in results["cells"]:
        where.setdefault(cell["machine"], set()).add(cell.get("commit", "unknown"))
    return "; ".join(f"{name} (commit {', '.join(sorted(some))})" for name, some in where.items())


def _trials(results: dict[str, Any]) -> str:
    """Say how many trials there are, of each data set where they differ."""
    usual = results["settings"]["trials"]
    found = {c["dataset"]: c.get("setting", {}).get("trials", usual) for c in results["cells"]}
    if len(set(found.values())) == 1:
        return count(next(iter(found.values())), "trial")
    words = [f"{count(found[name], 'trial')} of {TITLES[name]}" for name in TITLES if name in found]
    return listed(words, 4)


def _threads(results: dict[str, Any]) -> str:
    numbers = [str(number) for number in results["threads"]]
    return f", with {' or '.join(numbers)} threads" if numbers else ""


def figures(section: Section) -> dict[str, Plot]:
    """Return the plots of a section by the name of their file."""
    return {f"{section.experiment}-{k}": plot for k, plot in enumerate(section.plots)}


def missing(results: dict[str, Any]) -> str:
    """List the planned cells that the results do not have."""
    found = {(cell["experiment"], cell["name"]) for cell in results["cells"]}
    words = []
    for name in EXPERIMENTS:
        planned = importlib.import_module(f"augury_paper.{name}").cells(settings_of(results))
        names = [cell.name for cell in planned if (name, cell.name) not in found]
        if names:
            few = ", ".join(names) if len(names) < 6 else f"{len(names)} of {len(planned)} cells"
            words.append(f"of {name}, {few}")
    return "; ".join(words)


def _written(section: Section, plots: dict[str, Plot]) -> list[str]:
    text = [f"## {escape(section.title)}", "", escape(section.words), ""]
    for own, title in ((False, "the paper says"), (True, "our own check")):
        rows = [(c.words, c.paper, c.ours, c.verdict) for c in section.claims if c.own == own]
        if rows:
            text += [*_table((title, "its number", "ours", "verdict"), rows), ""]
    for name, plot in plots.items():
        text += [f"![{escape(plot.title)}](figures/reproduction/{name}.svg)", ""]
    for found in (found for found in section.tables if found.rows):
        text += [f"**{escape(found.title)}**", "", *_table(found.columns, found.rows), ""]
    if section.differences:
        text += ["**Where we differ on purpose**", ""]
        text += [*(f"- {escape(words)}" for words in section.differences), ""]
    return text


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(columns), _row(["---"] * len(columns)), *map(_row, rows)]


def _row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(t if t == "---" else escape(t) for t in texts) + " |"
