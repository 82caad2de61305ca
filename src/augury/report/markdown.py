"""The report as Markdown: the same order as the page, without pictures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from augury.report import findings, ranking, verdict
from augury.report.words import INTERVAL, Unit, chance, score_name

if TYPE_CHECKING:
    from augury.results.ranking import Ranking, Row

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def to_markdown(result: Ranking) -> str:
    """Return a ranking as Markdown."""
    lead, *rest = verdict.sentences(result)
    warned = [f for f in findings.find(result) if f.first]
    said = [ranking.plan_words(result.plan), result.trust]
    parts = [
        f"# {escape('Augmentations ranked on ' + str(result.dataset.get('name', 'the data')))}",
        *(f"**{f.title}.** {escape(f.text)}" for f in warned),
        f"**{escape(lead)}** {escape(' '.join(rest))}".strip(),
        *map(escape, filter(None, said)),
        "## Findings",
        _findings(result),
        "## By class",
        _classes(result),
        "## All candidates",
        _rows(result),
        "## Ready to paste",
        _paste(result),
        "## How it was computed",
        facts_table(ranking.facts(result)),
    ]
    return document(parts)


def document(parts: Iterable[str]) -> str:
    """Join the parts of a document; what cannot be written as UTF-8 becomes a mark."""
    return ("\n\n".join(filter(None, parts)) + "\n").encode("utf-8", "replace").decode()


def escape(text: str) -> str:
    """Write text so that Markdown shows it as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()).translate(_ENTITIES))


def code(text: str) -> str:
    """Write text as a code span fit for a table's cell."""
    text = " ".join(text.split()).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def block(text: str) -> str:
    """Write text as a block of code that nothing in it can end."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def table(header: list[str], rows: list[list[str]], right: int = 0, last: int = 0) -> str:
    """Write a table; `right` columns before the `last` are numbers and stand to the right."""
    rule = ["---"] * (len(header) - right - last) + ["--:"] * right + ["---"] * last
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


def facts_table(facts: Iterable[tuple[str, str]]) -> str:
    """Write names and values as a table without a header."""
    return table(["", ""], [[escape(name), escape(value)] for name, value in facts])


def _findings(result: Ranking) -> str:
    found = findings.find(result)
    if not found:
        return "Nothing stands out."
    return "\n".join(
        f"- **{f.code}** ({f.severity}) {escape(f.title)}: {escape('; '.join(f.evidence))}. "
        f"{escape(f.advice)}"
        for f in found
    )


def _classes(result: Ranking) -> str:
    why = ranking.no_classes(result)
    if why:
        return escape(why)
    unit, names = Unit.of(result), ranking.class_names(result)
    rows = [
        [
            code(row.augmentation),
            *(_gain(row, n, unit) for n in names),
        ]
        for row in result.rows
        if row.per_class
    ]
    shown = table(["candidate", *map(escape, names)], rows, right=len(names))
    return f"{escape(ranking.class_note(result))}\n\n{shown}"


def _gain(row: Row, name: str, unit: Unit) -> str:
    """Write the gain of a class with its interval, in bold where that excludes zero."""
    if name not in row.per_class:
        return "–"
    gain, low, high = row.per_class[name]
    text = unit.signed(gain)
    text = f"**{text}**" if low > 0 or high < 0 else text
    return f"{text} ({unit.span(low, high)})" if math.isfinite(high - low) else text


def _rows(result: Ranking) -> str:
    if not result.rows:
        return "No candidate was given."
    unit = Unit.of(result)
    known = any(row.probability is not None for row in result.rows)
    rows = [
        [
            str(rank),
            code(row.augmentation),
            row.verdict,
            unit.sided(row.gain),
            unit.span(row.low, row.high),
            *([] if not known else ["–" if row.probability is None else chance(row.probability)]),
            unit.plain(row.score),
        ]
        for rank, row in enumerate(result.rows, 1)
    ]
    empty = [""] * known
    rows.append(["", "no augmentation", "", "", "", *empty, unit.plain(result.baseline.score)])
    sure = ["likely to help"] * known
    header = ["rank", "candidate", "verdict", "gain", INTERVAL, *sure, escape(score_name(result))]
    return table(header, rows, right=3 + known)


def _paste(result: Ranking) -> str:
    blocks = [f"{escape(name)}:\n\n{block(text)}" for name, text in ranking.paste(result)]
    return "\n\n".join([*blocks, *map(escape, ranking.not_pasted(result))])
