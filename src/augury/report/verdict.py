"""The verdict in words: what a reader should know who reads nothing else."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from augury.report.words import INTERVAL, VERDICTS, Unit

if TYPE_CHECKING:
    from augury.results.ranking import Ranking, Row

_APART = "be told apart from no augmentation"


def caution(ranking: Ranking) -> str:
    """Say how far the score can be trusted; empty where nothing is known."""
    return ranking.trust


def tally(ranking: Ranking) -> dict[str, int]:
    """Count the candidates of each verdict."""
    found = Counter(row.verdict for row in ranking.rows)
    return {verdict: found[verdict] for verdict in VERDICTS}


def sentences(ranking: Ranking) -> list[str]:
    """Say the verdict, the most important sentence first."""
    unit, name = Unit.of(ranking), ranking.dataset.get("name", "the data")
    if not ranking.rows:
        return [f"Nothing was ranked on {name}: no candidate was given."]
    if len(ranking.rows) == 1:
        return [_single(ranking.rows[0], unit, name), "It was the only candidate."]
    best, first = ranking.best(), ranking.rows[0]
    if best is None:
        lead = [f"No candidate is known to help on {name}."]
        if first.verdict != "hurts":
            lead.append(f"The highest is {first.augmentation}: {_amount(first, unit)}.")
    elif best is first:
        lead = [f"{best.augmentation} helps most on {name}: {_amount(best, unit)}."]
    else:
        lead = [
            f"{best.augmentation} leads those known to help on {name}: {_amount(best, unit)}.",
            f"{first.augmentation} came out higher ({unit.signed(first.gain)}), "
            "but its interval includes zero.",
        ]
    return [*lead, _counts(ranking)]


def _amount(row: Row, unit: Unit) -> str:
    return f"{unit.gain(row.gain)} ({INTERVAL} {unit.span(row.low, row.high)})"


def _single(row: Row, unit: Unit, name: str) -> str:
    said = f"cannot {_APART}" if row.verdict == "can't tell" else row.verdict
    return f"{row.augmentation} {said} on {name}: {_amount(row, unit)}."


def _counts(ranking: Ranking) -> str:
    """Say how many candidates help, hurt and cannot be told; what is zero is left out."""
    found, total = tally(ranking), len(ranking.rows)
    order = [(v, found[v]) for v in ("helps", "hurts", "can't tell") if found[v]]
    if len(order) == 1:
        verdict = order[0][0]
        if verdict == "can't tell":
            return f"None of the {total} candidates can {_APART}."
        return f"All {total} candidates {verdict[:-1]}."
    parts = []
    for verdict, number in order:
        subject = f"{number} of {total} candidates" if not parts else str(number)
        verb = verdict if number == 1 else verdict.removesuffix("s")
        parts.append(f"{subject} {f'cannot {_APART}' if verdict == VERDICTS[1] else verb}")
    return ", ".join(parts) + "."
