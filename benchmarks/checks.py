"""docs/checks.md: what happens without an effect, within a budget, and where the code is wrong.

Made by `python benchmarks/pages.py` from the results that there are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import budgets
from _result import RESULTS

HEAD = """# Checks

Beside [how often such advice was right](prediction.md), these are checks of the tool itself. The
page is made by `python benchmarks/pages.py` from the results in `benchmarks/results/`.
"""

NO_EFFECT = """
## Where there is nothing to find

Candidates that change nothing that matters, and examples from which nothing can be learnt, {runs}
rankings of each with another seed (`benchmarks/no_effect.py`): the share of candidates that were
said to help or to hurt, and in brackets the share that were said *probably* to. At most
{most:.0f} % may be said to. A closed form gives no verdicts where its baseline is not better than
chance; copies of images and series are left out before anything is judged.

{table}
"""

BUDGETS = """
## What a budget costs

`augury rank … --budget S` on two cores, timed from the start of its process, against real training
and against the same command without a budget (`benchmarks/budgets.py`). *Covered* is the share of
real gains inside the 95 % interval. {kept} of {runs} runs kept their budget within 20 % and two
seconds; the least coverage is {least:.0f} %.

![Rank correlation, coverage and what was decided against time](figures/budgets.svg)

{table}
"""

MUTATION = """
## Would a test notice?

Each mutant is a module with one small change: an operator swapped, a comparison turned, a constant
changed (`benchmarks/mutate.py`). A mutant that fails no test has survived; the results list each
with its reason.

| package | mutants | killed |
| --- | --- | --- |
{table}
"""


def page(folder: Path = RESULTS) -> str:
    """Return the page."""
    parts = [HEAD]
    if found := _read(folder / "no_effect.json"):
        runs = max(row["runs"] for row in found["shares"])
        table = "\n".join(no_effect_table(found["shares"]))
        parts.append(NO_EFFECT.format(runs=runs, most=100 * found["most"], table=table))
    if found := _read(folder / "budgets.json"):
        limited = [one for one in found["runs"] if one["budget"] is not None]
        parts.append(
            BUDGETS.format(
                kept=sum(one["kept"] for one in limited),
                runs=len(limited),
                least=100 * min(one["covered"] for one in limited),
                table="\n".join(budgets.table(found)),
            )
        )
    rows = []
    for path in sorted(folder.glob("mutation_*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        package = path.stem.removeprefix("mutation_")
        share = 100 * found["killed"] / found["mutants"]
        rows.append(f"| {package} | {found['mutants']} | {found['killed']} ({share:.0f} %) |")
    parts.append(MUTATION.format(table="\n".join(rows)))
    return "".join(parts)


def no_effect_table(shares: list[dict[str, Any]]) -> list[str]:
    """Return a row for each case and a column for each score."""
    scores = list(dict.fromkeys(row["score"] for row in shares))
    lines = [f"| | {' | '.join(scores)} |", "| --- |" + " --- |" * len(scores)]
    for case in dict.fromkeys(row["case"] for row in shares):
        own = {row["score"]: row for row in shares if row["case"] == case}
        cells = [
            f"{100 * own[s]['sure']:.0f} % ({100 * own[s]['probably']:.0f} %)" if s in own else ""
            for s in scores
        ]
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return lines


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
