"""What stands out in a ranking: each finding has a code, its evidence and an advice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from augury._base.text import listed
from augury.report.words import Unit, count

if TYPE_CHECKING:
    from augury.results.ranking import Ranking, Row

SEVERITIES = ("warning", "notice", "info")

_MOST = 6  # lines of evidence


@dataclass(frozen=True)
class Finding:
    """Something that a reader should know, why, and what to do about it."""

    code: str
    severity: str
    title: str
    evidence: tuple[str, ...]
    advice: str


def find(ranking: Ranking) -> tuple[Finding, ...]:
    """Look through a ranking; the gravest finding comes first."""
    unit = Unit.of(ranking)
    checks = (_hurt, _nothing, _unclear, _edge, _strength, _narrow, _single, _notes)
    found = [finding for check in checks for finding in check(ranking, unit)]
    return tuple(sorted(found, key=lambda f: (SEVERITIES.index(f.severity), f.code)))


def hurt_classes(row: Row) -> list[tuple[str, float]]:
    """Give the classes that a helping candidate hurts, worst first.

    The gain of a single class has no interval of its own; it counts as a loss once it lies below
    zero by more than half the width of the candidate's interval.
    """
    if row.verdict != "helps":
        return []
    margin = (row.high - row.low) / 2
    lost = [(name, gain) for name, gain in row.per_class.items() if gain < -margin]
    return sorted(lost, key=lambda pair: pair[1])


def _hurt(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    evidence = []
    for row in ranking.rows:
        lost = [f"class {name} ({unit.signed(gain)})" for name, gain in hurt_classes(row)]
        if lost:
            evidence.append(f"{row.augmentation} ({unit.signed(row.gain)}) hurts {listed(lost, 4)}")
    if evidence:
        number, said = len(evidence), "Helps on the whole, but hurts a class"
        if number > 1:
            said = f"{number} candidates help on the whole, but hurt a class"
        if number > _MOST:
            evidence[_MOST:] = [f"so do {number - _MOST} more; the table by class marks them all"]
        yield Finding(
            "A001",
            "warning",
            said,
            tuple(evidence),
            "Check these classes before you use the candidate on all: it may make one class look "
            "like another. A single class has no interval of its own: a small loss may be chance.",
        )


def _nothing(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    if len(ranking.rows) > 1 and ranking.best() is None:
        yield Finding(
            "A002",
            "notice",
            "No candidate is known to help",
            (f"none of the {len(ranking.rows)} intervals lies above zero",),
            "Train without augmentation, or try milder settings and other families.",
        )


def _unclear(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    unclear = [row for row in ranking.rows if row.verdict == "can't tell"]
    if 2 * len(unclear) > len(ranking.rows):
        reach = float(np.median([(row.high - row.low) / 2 for row in unclear]))
        yield Finding(
            "A003",
            "notice",
            "The intervals are wide",
            (
                f"zero lies in {len(unclear)} of {count(len(ranking.rows), 'interval')}; "
                f"a typical one reaches {unit.plain(reach)} to each side",
            ),
            "Most of an interval is how far real training strays from a brief trial: train the "
            "leaders to be sure."
            if ranking.score == "trial"
            else "Use more examples if you have them: four times as many halve the intervals.",
        )


def _edge(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    evidence = []
    for curve in ranking.curves():
        best, strongest = max(curve.rows, key=lambda row: row.gain), curve.rows[-1]
        if best is strongest and best.verdict == "helps" and not best.strongest:
            evidence.append(
                f"{best.augmentation} ({unit.signed(best.gain)}) is the best and the "
                f"strongest of {len(curve.rows)} settings of {curve.family}"
            )
    if evidence:
        yield Finding(
            "A004",
            "notice",
            "The best setting lies at the edge of what was tried",
            tuple(evidence),
            "Try stronger settings as well: the best may lie beyond.",
        )


def _strength(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    evidence = []
    for curve in ranking.curves():
        helping = [row for row in curve.rows if row.verdict == "helps"]
        hurting = [row for row in curve.rows if row.verdict == "hurts"]
        if helping and hurting and curve.rows.index(hurting[0]) > curve.rows.index(helping[-1]):
            good, bad = helping[-1], hurting[0]
            evidence.append(
                f"{good.augmentation} helps ({unit.signed(good.gain)}), "
                f"{bad.augmentation} hurts ({unit.signed(bad.gain)})"
            )
    if evidence:
        yield Finding(
            "A005",
            "info",
            "Strength decides",
            tuple(evidence),
            "Stay at or below the setting that helps.",
        )


def _narrow(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    best = ranking.best()
    if best is None:
        return
    near = [
        r for r in ranking.rows if r is not best and r.verdict == "helps" and r.high >= best.low
    ]
    if near:
        names = [f"{row.augmentation} ({unit.signed(row.gain)})" for row in near]
        yield Finding(
            "A006",
            "info",
            "The lead is narrow",
            (f"the interval of {best.augmentation} overlaps with that of {listed(names, 4)}",),
            "Choose among them by what you know of the data, or use more examples. The intervals "
            "are of the gain over no augmentation, so an overlap is only a rough sign.",
        )


def _single(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    if len(ranking.rows) == 1:
        yield Finding(
            "A007",
            "info",
            "Only one candidate",
            (f"{ranking.rows[0].augmentation} was compared with no augmentation alone",),
            "Rank several candidates, or none by name for the default ones, to see what is better.",
        )


def _notes(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    notes = tuple(str(note) for note in ranking.dataset.get("notes") or ())
    if notes:
        yield Finding(
            "A008",
            "info",
            "The data were changed on the way in",
            notes,
            "Compare this ranking only with rankings of the same examples.",
        )
