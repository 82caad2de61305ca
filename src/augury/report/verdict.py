"""The verdict in words, for a reader who reads nothing else."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from augury.report.words import INTERVAL, VERDICTS, Unit, chance

if TYPE_CHECKING:
    from augury.results.ranking import Ranking, Row

_PLURAL = {
    "helps": "help",
    "probably helps": "probably help",
    "can't tell": "cannot be told apart from no augmentation",
    "probably hurts": "probably hurt",
    "hurts": "hurt",
}
_SINGULAR = {**{word: word for word in VERDICTS}, "can't tell": _PLURAL["can't tell"]}


def tally(ranking: Ranking) -> dict[str, int]:
    """Count the candidates of each verdict that occurs, best first."""
    found = Counter(row.verdict for row in ranking.rows)
    return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}


def at_ceiling(ranking: Ranking) -> bool:
    """Whether every held-out example is right without augmentation, and nothing gains."""
    gains = any(row.verdict in ("helps", "probably helps") for row in ranking.rows)
    return ranking.baseline.faultless and not gains


def negligible(ranking: Ranking) -> bool:
    """Whether no candidate changes a closed-form score by enough to count, although some do."""
    undecided = all(row.verdict == "can't tell" for row in ranking.rows)
    differ = any(row.low > 0 or row.high < 0 for row in ranking.rows)
    return not ranking.in_points and not ranking.warnings and undecided and differ


def first_to_try(ranking: Ranking) -> Row | None:
    """Return the candidate to try first: the surest to help, else the highest gain above zero.

    There is none with warnings, since no verdicts are given, if nothing is left to gain, or if all
    differences are too small to count.
    """
    if ranking.warnings or at_ceiling(ranking) or negligible(ranking):
        return None
    best = ranking.best()
    if best is not None or not ranking.rows:
        return best
    likely = next((row for row in ranking.rows if row.verdict == "probably helps"), None)
    first = ranking.rows[0]
    return likely or (first if first.gain > 0 and first.verdict == "can't tell" else None)


def may_help(ranking: Ranking) -> list[Row]:
    """Return the candidates that nothing is known of, but that may gain, highest first."""
    return [row for row in ranking.rows if row.verdict == "can't tell" and row.high > 0]


def sentences(ranking: Ranking) -> list[str]:
    """Return the verdict, the most important sentence first."""
    unit, name = Unit.of(ranking), ranking.dataset.get("name", "the data")
    if not ranking.rows:
        return [f"Nothing was ranked on {name}: no candidate was given."]
    if at_ceiling(ranking):
        return [
            f"Nothing is left to gain on {name}: every held-out example is classified correctly "
            "without augmentation.",
            "Augmentation may still protect a network from changes that these examples do not "
            "show, which this ranking cannot measure.",
            *([_counts(ranking)] if any("hurts" in row.verdict for row in ranking.rows) else []),
        ]
    first, alone = ranking.rows[0], len(ranking.rows) == 1
    if ranking.warnings:
        which = "was the only candidate, with the" if alone else "has the highest"
        return [
            f"No verdicts are given for {name}.",
            f"{first.augmentation} {which} estimate: {amount(first, unit)}.",
        ]
    if alone:
        return [_single(first, unit, name), "It was the only candidate."]
    return [*_lead(ranking, unit, name), *([] if negligible(ranking) else [_counts(ranking)])]


def _lead(ranking: Ranking, unit: Unit, name: str) -> list[str]:
    chosen, first = first_to_try(ranking), ranking.rows[0]
    if negligible(ranking):
        return [
            f"No candidate matters on {name}: none changes the score by 1 % or more.",
            f"{first.augmentation} has the highest score: {amount(first, unit)}.",
        ]
    if chosen is None and (unknown := may_help(ranking)):
        highest = unknown[0]
        return [
            f"This ranking cannot tell whether any candidate helps on {name}.",
            f"Of those that may help, {highest.augmentation} has the highest estimate: "
            f"{amount(highest, unit)}.",
        ]
    if chosen is None:
        lead = [f"No candidate is expected to help on {name}."]
        if first.verdict in ("can't tell", "probably hurts"):
            lead.append(f"The least harmful is {first.augmentation}: {amount(first, unit)}.")
        return lead
    said = f"{amount(chosen, unit)}."
    if chosen.verdict == "probably helps":
        return [f"Try {chosen.augmentation} first on {name}: it probably helps, {said}"]
    if _too_small(chosen):
        return [f"No gain is large enough to matter on {name}; the highest: {said}"]
    if chosen.verdict == "can't tell":
        return [f"No gain is certain on {name}; try {chosen.augmentation} first: {said}"]
    if chosen is first:
        return [f"{chosen.augmentation} helps most on {name}: {said}"]
    lead = f"Of the candidates known to help on {name}, {chosen.augmentation} has the highest gain"
    if sum(row.verdict == "helps" for row in ranking.rows) == 1:
        lead = f"{chosen.augmentation} is the only candidate known to help on {name}"
    return [
        f"{lead}: {said}",
        f"{first.augmentation} has a higher gain ({unit.signed(first.gain)}), but less certain.",
    ]


def amount(row: Row, unit: Unit) -> str:
    """Write a gain with its interval and, where it is known, the probability that it is one."""
    what = "help" if unit.name == "points" else "raise the score"
    sure = "" if row.probability is None else f"; {chance(row.probability)} likely to {what}"
    return f"{unit.gain(row.gain)} ({INTERVAL} {unit.span(row.low, row.high)}{sure})"


def _too_small(row: Row) -> bool:
    """Whether a candidate surely changes something, but by less than counts."""
    return row.verdict == "can't tell" and (row.low > 0 or row.high < 0)


def _single(row: Row, unit: Unit, name: str) -> str:
    said = "changes too little to matter" if _too_small(row) else _SINGULAR[row.verdict]
    return f"{row.augmentation} {said} on {name}: {amount(row, unit)}."


def _counts(ranking: Ranking) -> str:
    """Return how many candidates have each verdict, without verdicts that do not occur."""
    found, total = tally(ranking), len(ranking.rows)
    if len(found) == 1:
        (verdict,) = found
        if verdict == "can't tell":
            none = "Neither of the two" if total == 2 else f"None of the {total}"
            return f"{none} candidates can be told apart from no augmentation."
        return f"{'Both' if total == 2 else f'All {total}'} candidates {_PLURAL[verdict]}."
    parts = []
    for verdict, number in found.items():
        subject = str(number) if parts else f"{number} of {total} candidates"
        parts.append(f"{subject} {(_SINGULAR if number == 1 else _PLURAL)[verdict]}")
    return ", ".join(parts) + "."
