"""The report as Markdown: the same order as the page, without pictures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from augury.report import findings, ranking, verdict
from augury.report.words import INTERVAL, Unit

if TYPE_CHECKING:
    from augury.results.ranking import Ranking

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def to_markdown(result: Ranking) -> str:
    """Write a ranking as Markdown."""
    lead, *rest = verdict.sentences(result)
    caution = verdict.caution(result)
    parts = [
        f"# {escape('Augmentations ranked on ' + str(result.dataset.get('name', 'the data')))}",
        f"**{escape(lead)}** {escape(' '.join(rest))}".strip(),
        *([escape(caution)] if caution else []),
        "## Findings",
        _findings(result),
        "## By class",
        _classes(result),
        "## All candidates",
        _rows(result),
        "## Ready to paste",
        _paste(result),
        "## How it was computed",
        table(["", ""], [[escape(n), escape(value)] for n, value in ranking.facts(result)]),
    ]
    return ("\n\n".join(parts) + "\n").encode("utf-8", "replace").decode()


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


def table(header: list[str], rows: list[list[str]], right: int = 0) -> str:
    """Write a table; its last `right` columns are numbers and stand to the right."""
    rule = ["---"] * (len(header) - right) + ["--:"] * right
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


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
            *(unit.signed(row.per_class[n]) if n in row.per_class else "–" for n in names),
        ]
        for row in result.rows
        if row.per_class
    ]
    return table(["candidate", *map(escape, names)], rows, right=len(names))


def _rows(result: Ranking) -> str:
    if not result.rows:
        return "No candidate was given."
    unit = Unit.of(result)
    rows = [
        [
            str(rank),
            code(row.augmentation),
            row.verdict,
            unit.signed(row.gain),
            unit.span(row.low, row.high),
            unit.plain(row.score),
        ]
        for rank, row in enumerate(result.rows, 1)
    ]
    rows.append(["", "no augmentation", "", "", "", unit.plain(result.baseline.score)])
    header = ["rank", "candidate", "verdict", "gain", INTERVAL, escape(result.score)]
    return table(header, rows, right=3)


def _paste(result: Ranking) -> str:
    blocks = [f"{escape(name)}:\n\n{block(text)}" for name, text in ranking.paste(result)]
    return "\n\n".join([*blocks, *map(escape, ranking.not_pasted(result))])
