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

[Whether forecasts come true](prediction.md) is on another page; these are checks of the tool
itself. The page is made by `python benchmarks/pages.py` from the results in `benchmarks/results/`.
"""

NO_EFFECT = """
## Where there is nothing to find

Here no candidate has an effect: it changes nothing that matters, or nothing can be learnt from the
examples. Each case was ranked {runs} times with different seeds (`benchmarks/no_effect.py`). The
table has the share of candidates with the verdict *helps* or *hurts*, which should be at most
{most:.0f} %, and in brackets the share with *probably*. A closed form gives no verdicts if its
baseline is no better than chance; copies of images and series are removed before judging.

{table}
"""

BUDGETS = """
## What a budget costs

`augury rank … --budget S` on two cores, timed from the start of its process, against real training
and against the whole trial of a small network, `--effort 7` (`benchmarks/budgets.py`). *Covered* is
the share of real gains inside the 95 % interval, *level* the amount of work that the budget
allowed. {kept} of {runs} runs kept their budget within 20 % and two seconds; the least coverage is
{least:.0f} %.{refused}{note}

![Rank correlation, coverage and what was decided against time](figures/budgets.svg)

{table}
"""

FUZZ = """
## Damaged input

Data files of every format, specs of augmentations and model files, changed at random
(`python -m tests.fuzz`, seed {seed}): each is read, or refused in one line. A case fails if it
raises anything but an `AuguryError`, takes over {seconds_each} s of CPU time or {gib_each} GiB,
starts a program, opens a socket or writes a file. The tests run 300 of each, with another seed.

| changed | cases | read | refused | failed | most memory |
| --- | --: | --: | --: | --: | --: |
{table}
"""

MUTATION = """
## Would a test notice?

Each mutant is a module with one small change: an operator swapped, a comparison turned, a constant
changed (`benchmarks/mutate.py`). A mutant that fails no test has survived.

| package | mutants | killed |
| --- | --- | --- |
{table}
"""

SURVIVORS = """
### Survivors in {package}

| module | code | changed to | why no test fails |
| --- | --- | --- | --- |
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
        limited = [one for one in found["runs"] if one["budget"] is not None and "kept" in one]
        parts.append(
            BUDGETS.format(
                kept=sum(one["kept"] for one in limited),
                runs=len(limited),
                least=100 * min(one["covered"] for one in limited),
                refused=_refused(found["runs"]),
                note=f" {found['note']}" if "note" in found else "",
                table="\n".join(budgets.table(found)),
            )
        )
    if found := _read(folder / "fuzz.json"):
        parts.append(FUZZ.format(**found, table="\n".join(map(fuzz_row, found["targets"]))))
    results = {
        path.stem.removeprefix("mutation_"): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("mutation_*.json"))
    }
    rows = [
        f"| {package} | {found['mutants']} | {found['killed']} "
        f"({100 * found['killed'] / found['mutants']:.0f} %) |"
        for package, found in results.items()
    ]
    parts.append(MUTATION.format(table="\n".join(rows)))
    for package, found in results.items():
        if table := "\n".join(survivors_table(package, found["modules"])):
            parts.append(SURVIVORS.format(package=package, table=table))
    return "".join(parts)


def fuzz_row(found: dict[str, Any]) -> str:
    """Return what came of the cases of one target, as a row."""
    counts = (f"{found[key]:,}" for key in ("count", "read", "refused", "failed"))
    return f"| {found['what']} | {' | '.join(counts)} | {found['peak_mib']} MiB |"


def _refused(runs: list[dict[str, Any]]) -> str:
    """Return what was said of budgets that are too short for any trial."""
    said = [f"`{one['refused']}`" for one in runs if "refused" in one]
    return f" Refused: {'; '.join(said)}." if said else ""


def survivors_table(package: str, modules: dict[str, Any]) -> list[str]:
    """Return a row for each mutant that survived, with its reason."""
    rows = []
    for path, module in modules.items():
        name = path.removeprefix(f"src/augury/{package}/")
        for one in module["survived"]:
            before, after = (text.replace("|", "\\|") for text in _changed(one))
            rows.append(f"| {name}:{one['line']} | `{before}` | `{after}` | {one['reason']} |")
    return rows


def _changed(one: dict[str, Any], around: int = 30) -> tuple[str, str]:
    """Return what was changed and what it was changed to, with a little of what is around it."""
    before, after = one["before"], one["after"]
    least = min(len(before), len(after))
    first = next((k for k in range(least) if before[k] != after[k]), least)
    same = next((k for k in range(least - first) if before[-k - 1] != after[-k - 1]), least - first)
    start = max(0, first - around)
    return tuple(
        ("…" if start else "")
        + text[start : len(text) - same + around]
        + ("…" if same > around else "")
        for text in (before, after)
    )


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
