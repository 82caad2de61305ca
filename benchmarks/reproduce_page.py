"""Write docs/reproduced.md from committed results of `augury reproduce`.

    python benchmarks/reproduce_page.py

Every ``results.json`` under ``benchmarks/results/reproduce/`` is read, whatever it is called; they
must have been computed with the same settings. A cell that two of them hold is taken from the last.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

from augury.report.markdown import escape
from augury.report.words import duration
from augury_paper import WHATS
from augury_paper.errata import ERRATA
from augury_paper.page import lead
from augury_paper.plots import plot_figure
from augury_paper.run import sections, settings_of
from augury_paper.section import Section

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "reproduce"
DOCS = HERE.parent / "docs"
FIGURES = DOCS / "figures" / "reproduction"

HEAD = """# The paper, reproduced

What `augury reproduce` (see [its page](reproduction.md)) computed at the settings of the paper's
appendix. This page is made from committed results by `python benchmarks/reproduce_page.py`; a
spread (±) is the standard deviation over trials unless said otherwise.
"""


def merged(paths: list[Path]) -> dict[str, Any]:
    """Join results of several runs."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if any(results["settings"] != found[0]["settings"] for results in found):
        sys.exit("the results were computed with different settings")
    cells = {(c["what"], c["name"]): c for results in found for c in results["cells"]}
    seconds: dict[str, float] = {}
    for cell in cells.values():
        seconds[cell["dataset"]] = seconds.get(cell["dataset"], 0.0) + cell["seconds"]
    shown = {what for results in found for what in results["whats"]}
    return {
        "settings": found[0]["settings"],
        "whats": [what for what in WHATS if what in shown],
        "seconds": seconds,
        "cells": list(cells.values()),
    }


def missing(results: dict[str, Any]) -> str:
    """Say what the paper's settings ask for and the results do not hold."""
    found = {(cell["what"], cell["name"]) for cell in results["cells"]}
    words = []
    for what in WHATS:
        planned = importlib.import_module(f"augury_paper.{what}").cells(settings_of(results))
        names = [cell.name for cell in planned if (what, cell.name) not in found]
        if names:
            few = ", ".join(names) if len(names) < 4 else f"{len(names)} of {len(planned)} cells"
            words.append(f"of {what}, {few}")
    return "; ".join(words)


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return ["| " + " | ".join(escape(text) if text != "---" else text for text in line) + " |"
            for line in lines]  # fmt: skip


def written(section: Section) -> list[str]:
    """Write a section, and its figures beside."""
    text = [f"## {escape(section.title)}", "", escape(section.words), ""]
    if section.claims:
        rows = [(c.words, c.paper, c.ours, c.verdict) for c in section.claims]
        text += [*table(("the paper says", "its number", "ours", "verdict"), rows), ""]
    for k, plot in enumerate(section.plots):
        name = f"{section.what}-{k}.svg"
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "augury", "font.size": 9}):
            plot_figure(plot).savefig(FIGURES / name, metadata={"Date": None})
        text += [f"![{escape(plot.title)}](figures/reproduction/{name})", ""]
    for found in (found for found in section.tables if found.rows):
        text += [f"**{escape(found.title)}**", "", *table(found.columns, list(found.rows)), ""]
    if section.differences:
        text += ["**Where we differ on purpose**", ""]
        text += [*(f"- {escape(words)}" for words in section.differences), ""]
    return text


def main() -> None:
    paths = sorted(RESULTS.rglob("*.json"))
    if not paths:
        sys.exit(f"there are no results in {RESULTS}: run augury reproduce and put them there")
    results = merged(paths)
    FIGURES.mkdir(parents=True, exist_ok=True)
    for old in FIGURES.glob("*.svg"):
        old.unlink()
    parts = sections(results)
    verdicts = [claim.verdict for part in parts for claim in part.claims]
    machines = sorted({cell["machine"] for cell in results["cells"]})
    times = [f"{name} {duration(took)}" for name, took in sorted(results["seconds"].items())]
    text = [HEAD, f"**{lead(verdicts)}**", ""]
    text += [f"Computed on {'; '.join(machines)}. Time in all: {', '.join(times)}.", ""]
    if absent := missing(results):
        text += [f"Not computed here: {absent}.", ""]
    for part in parts:
        text += written(part)
    text += ["## Where we differ from the paper on purpose", ""]
    text += [f"{d.number}. **{escape(d.title)}** ({d.what}). {escape(d.words)}" for d in ERRATA]
    (DOCS / "reproduced.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print(f"wrote {DOCS / 'reproduced.md'}")


if __name__ == "__main__":
    main()
