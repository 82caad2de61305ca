"""The page of a reproduction: each claim of the paper beside what was measured here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from augury._base.text import count, listed
from augury.report.page import render_page
from augury.report.words import duration
from augury_paper.plots import draw
from augury_paper.section import Difference, Section, Verdict

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_TONES = dict(zip(VERDICTS, ("helps", "weaker", "hurts", "unsure"), strict=True))
_SAID = ("holds", "holds weaker", "does not hold", "could not be checked")
_SAID_MANY = ("hold", "hold weaker", "do not hold", "could not be checked")


@dataclass(frozen=True)
class Facts:
    """How a reproduction was computed; `paper` where the settings are the paper's own."""

    settings: Mapping[str, Any]
    paper: bool
    machines: Sequence[str]
    replaced: Sequence[str]
    cells: int
    seconds: Mapping[str, float]


def to_html(
    sections: Sequence[Section],
    facts: Facts,
    errata: Sequence[Difference],
    results: Mapping[str, Any],
) -> str:
    """Write the page.

    Parameters
    ----------
    sections
        What it shows.
    facts
        How it was computed.
    errata
        Where we differ from the paper on purpose.
    results
        All numbers, which the page holds and offers to save.
    """
    verdicts = [c.verdict for section in sections for c in section.claims if not c.own]
    return render_page(
        "reproduction.html",
        json.dumps(_plain(results)),
        package="augury_paper",
        title="A kernel theory of data augmentation, reproduced",
        file_name="reproduction.json",
        lead=lead(sections),
        caution=_caution(facts),
        tally={verdict: verdicts.count(verdict) for verdict in VERDICTS},
        tallies=[_tally(section) for section in sections],
        verdicts=VERDICTS,
        tones=_TONES,
        sections=[(section, [draw(plot) for plot in section.plots]) for section in sections],
        errata=errata,
        facts=_facts(facts),
        times=[(name, duration(value)) for name, value in sorted(facts.seconds.items())],
        total=duration(sum(facts.seconds.values())),
    )


def lead(sections: Sequence[Section]) -> str:
    """Say in a sentence or two how many of the paper's claims hold, and of our own."""
    claims = [claim for section in sections for claim in section.claims]
    if not claims:
        return "No claim was checked."
    paper = [claim.verdict for claim in claims if not claim.own]
    own = [claim.verdict for claim in claims if claim.own]
    sentences = []
    if paper:
        claim = "claim" if len(paper) == 1 else "claims"
        sentences.append(f"Of the paper's {len(paper)} {claim}, {_counted(paper)}.")
    if own:
        sentences.append(
            f"Of {count(len(own), 'check')} of our own, by other methods or measures, "
            f"{_counted(own)}."
        )
    return " ".join(sentences)


def _counted(verdicts: Sequence[str]) -> str:
    parts = []
    for verdict, one, many in zip(VERDICTS, _SAID, _SAID_MANY, strict=True):
        number = verdicts.count(verdict)
        if number:
            parts.append(f"{number} {one if number == 1 else many}")
    return listed(parts, 4)


def _tally(section: Section) -> tuple[Section, list[int]]:
    found = [claim.verdict for claim in section.claims if not claim.own]
    return section, [found.count(verdict) for verdict in VERDICTS]


def _caution(facts: Facts) -> str:
    if facts.paper:
        return ""
    return (
        "These are smaller settings than the paper's, for a quick look: the verdicts show that "
        "everything runs and say little about the paper."
    )


def _facts(facts: Facts) -> list[tuple[str, str]]:
    names = {
        "trials": "Trials",
        "n_components": "Fourier features",
        "learning_rate": "Learning rate",
        "momentum": "Momentum",
        "batch_size": "Batch size",
        "epochs": "Epochs",
        "n_views": "Views of each image",
        "examples": "Training images",
        "tests": "Test images",
    }
    found = []
    for key, name in names.items():
        value = facts.settings[key]
        whole = key in ("examples", "tests") and value == 0
        found.append((name, "all" if whole else f"{value:,}"))
    found.append(("Computed on", "; ".join(facts.machines) or "nothing yet"))
    found.append(("Data", "; ".join(facts.replaced) or "as published"))
    found.append(("Cells", f"{facts.cells:,}"))
    return found


def _plain(value: Any) -> Any:
    """Return the same values with None for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
