"""What stands out in a ranking: each finding has a code, its evidence and advice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from augury._base.text import count, listed
from augury.report.verdict import amount, at_ceiling, first_to_try, may_help, negligible
from augury.report.words import Unit

if TYPE_CHECKING:
    from augury.results.ranking import Ranking, Row

SEVERITIES = ("warning", "notice", "info")

_MOST = 6  # lines of evidence

# What the data are warned of, by code: finding, severity, title, advice, whether it comes first.
_WARNINGS = {
    "few-examples": (
        "A011",
        "warning",
        "Too few examples to rely on",
        "Treat the order as a suggestion, and collect more examples before you rely on it.",
        True,
    ),
    "few-groups": (
        "A015",
        "notice",
        "Few groups",
        "Test the top candidates on new groups: the intervals may be too narrow for them.",
        False,
    ),
    "many-classes": (
        "A012",
        "warning",
        "Too many classes for so few examples",
        "Treat the order as a suggestion; use more examples or fewer classes.",
        True,
    ),
    "unequal-classes": (
        "A010",
        "warning",
        "The classes are imbalanced",
        "Read the gains by class, and report balanced accuracy when you train.",
        False,
    ),
    "few-in-class": (
        "A013",
        "notice",
        "Some classes are very small",
        "Their gains by class are the least certain: do not rely on them.",
        False,
    ),
}


@dataclass(frozen=True)
class Finding:
    """Something that a reader should know, why, and what to do about it."""

    code: str
    severity: str
    title: str
    evidence: tuple[str, ...]
    advice: str
    first: bool = False
    """Whether the numbers mean little without it, so that it stands before them."""

    @property
    def text(self) -> str:
        """The evidence and the advice as sentences."""
        said = "; ".join(self.evidence)
        return f"{said[:1].upper()}{said[1:]}. {self.advice}".strip()


def find(ranking: Ranking) -> tuple[Finding, ...]:
    """Return the findings of a ranking, the most serious first."""
    unit = Unit.of(ranking)
    checks = (
        _data, _ceiling, _hurt, _nothing, _unclear, _edge, _strength, _narrow, _single,
        _notes,
    )  # fmt: skip
    found = [finding for check in checks for finding in check(ranking, unit)]
    return tuple(sorted(found, key=lambda f: (SEVERITIES.index(f.severity), f.code)))


def hurt_classes(row: Row) -> list[tuple[str, float]]:
    """Return the classes that a candidate hurts although it helps overall, worst first."""
    if row.verdict not in ("helps", "probably helps"):
        return []
    lost = [(name, gain) for name, (gain, _, high) in row.per_class.items() if high < 0]
    return sorted(lost, key=lambda pair: pair[1])


def about_data(dataset: dict[str, Any]) -> Iterator[Finding]:
    """Yield the warnings in the description of a data set as findings."""
    for code, sentence in dataset.get("warnings") or ():
        yield Finding(*_WARNINGS[code][:3], (sentence,), *_WARNINGS[code][3:])


def _data(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    yield from about_data(ranking.dataset)
    for sentence in ranking.warnings:
        yield Finding(
            "A014", "warning", "No verdicts are given", (sentence,),
            "", first=True,
        )  # fmt: skip


def _ceiling(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    if at_ceiling(ranking):
        yield Finding(
            "A009",
            "notice",
            "Nothing is left to gain",
            ("every held-out example is classified correctly without augmentation",),
            "Choose augmentations for variations that are absent from your examples but will occur "
            "in practice, and test on examples that contain them.",
        )


def _hurt(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    evidence = []
    tried = " in the trial" if ranking.effort else ""  # and not in the planned training
    for row in ranking.rows:
        lost = [f"class {name} ({unit.signed(gain)}{tried})" for name, gain in hurt_classes(row)]
        if lost:
            verb = "may hurt" if row.verdict.startswith("probably") else "hurts"
            evidence.append(f"{row.augmentation} {verb} {listed(lost)}")
    if evidence:
        number, said = len(evidence), "A candidate helps overall but hurts a class"
        if number > 1:
            said = f"{number} candidates help overall but hurt a class"
        if number > _MOST:
            evidence[_MOST:] = [f"and {number - _MOST} more; the table by class marks all of them"]
        yield Finding(
            "A001",
            "warning",
            said,
            tuple(evidence),
            "Check these classes before you apply the candidate to all of them: it may make one "
            "class look like another.",
        )


def _nothing(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    known = ranking.best() is not None or at_ceiling(ranking) or negligible(ranking)
    if len(ranking.rows) < 2 or known or ranking.warnings:
        return
    chosen = first_to_try(ranking)
    if chosen is None and (unknown := may_help(ranking)):
        yield Finding(
            "A002",
            "notice",
            "It is unclear whether any candidate helps",
            tuple(f"{row.augmentation}: {amount(row, unit)}" for row in unknown[:3]),
            "This is evidence neither for these candidates nor against them. To find out, train "
            "with one and without it on the same examples.",
        )
        return
    if chosen is None:
        yield Finding(
            "A002",
            "notice",
            "No candidate is expected to help",
            (f"none of the {len(ranking.rows)} candidates improves the score",),
            "Leave these out for now. Milder settings and other families may still help: try them "
            "with --sweep.",
        )
        return
    leaders = [row for row in ranking.rows if row.gain > 0 and "hurts" not in row.verdict][:3]
    yield Finding(
        "A002",
        "notice",
        "No gain is certain",
        tuple(f"{row.augmentation}: {amount(row, unit)}" for row in leaders),
        f"Try {chosen.augmentation} first: train with it and without it on the same examples, and "
        "keep it if it wins.",
    )


def _unclear(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    unclear = [row for row in ranking.rows if row.verdict == "can't tell"]
    if ranking.warnings or at_ceiling(ranking) or negligible(ranking):
        return
    if 2 * len(unclear) > len(ranking.rows):
        reach = float(np.median([(row.high - row.low) / 2 for row in unclear]))
        yield Finding(
            "A003",
            "notice",
            "The intervals are wide",
            (
                f"{len(unclear)} of {count(len(ranking.rows), 'candidate')} cannot be told apart "
                f"from no augmentation; a typical interval is ±{unit.plain(reach)} {unit.name}",
            ),
            "Give the trial more time (a larger --budget) or more examples, or train with the best "
            "candidates yourself: part of the width of each interval reflects the errors of past "
            "forecasts."
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
            "The best setting is the strongest one tried",
            tuple(evidence),
            "Also try stronger settings (--sweep): the best one may be beyond this range.",
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
            "Whether it helps depends on the strength",
            tuple(evidence),
            "Use the setting that helps, or a milder one.",
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
            "Use what you know about the data to choose among them, or combine them. The intervals "
            "are for the gain over no augmentation, so an overlap is only a rough indication.",
        )


def _single(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    if len(ranking.rows) == 1:
        yield Finding(
            "A007",
            "info",
            "Only one candidate",
            (f"{ranking.rows[0].augmentation} was compared only with no augmentation",),
            "Rank several candidates, or omit -a to rank the default ones.",
        )


def _notes(ranking: Ranking, unit: Unit) -> Iterator[Finding]:
    notes = tuple(str(note) for note in ranking.dataset.get("notes") or ())
    if notes:
        yield Finding(
            "A008",
            "info",
            "How the data was read",
            notes,
            "Compare this ranking only with other rankings of the same examples.",
        )
