"""What a ranking comes to, in a few sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_rankings import make_ranking, make_row

from augury.report import to_fragment, to_html, to_markdown, verdict
from augury.report.words import INTERVAL


def test_verdict_names_the_best_its_interval_and_the_counts() -> None:
    lead, counts = verdict.sentences(make_ranking())
    assert lead == (
        f"rotation(15) helps most on mnist5k: +0.021 alignment ({INTERVAL} +0.018 to +0.024)."
    )
    assert counts == (
        "10 of 24 candidates help, 3 cannot be told apart from no augmentation, 11 hurt."
    )


def test_a_ranking_prints_a_line_a_candidate() -> None:
    ranking = make_ranking()
    lines = str(ranking).splitlines()
    assert len(lines) == len(ranking.rows)
    assert lines[0].startswith(f"{ranking.rows[0].augmentation}: {ranking.rows[0].gain:+.3g} (")
    assert lines[0].endswith(f", {ranking.rows[0].verdict}")


def test_verdict_when_nothing_helps() -> None:
    ranking = make_ranking()
    hurting = tuple(row for row in ranking.rows if row.verdict == "hurts")
    assert verdict.sentences(replace(ranking, rows=hurting)) == [
        "No candidate is expected to help on mnist5k.",
        "All 11 candidates hurt.",
    ]
    unclear = (make_row("invert", 0.001), make_row("flips", -0.001))
    assert verdict.sentences(replace(ranking, rows=unclear)) == [
        "No gain is certain on mnist5k; try invert first: "
        f"+0.001 alignment ({INTERVAL} −0.002 to +0.004).",
        "None of the 2 candidates can be told apart from no augmentation.",
    ]


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (0.02, "invert helps on mnist5k: +0.020 alignment"),
        (-0.02, "invert hurts on mnist5k: −0.020 alignment"),
        (0.001, "invert cannot be told apart from no augmentation on mnist5k: +0.001 alignment"),
    ],
)
def test_verdict_of_one_candidate(gain: float, said: str) -> None:
    ranking = replace(make_ranking(), rows=(make_row("invert", gain),))
    lead, rest = verdict.sentences(ranking)
    assert lead.startswith(said)
    assert rest == "It was the only candidate."


def test_verdict_when_the_highest_is_uncertain() -> None:
    rows = (make_row("invert", 0.03, 0.05), make_row("flips", 0.02), make_row("noise(0.1)", -0.02))
    lead, uncertain, counts = verdict.sentences(replace(make_ranking(), rows=rows))
    assert lead.startswith("flips leads the candidates known to help on mnist5k: +0.020 alignment")
    assert uncertain == "invert has a higher gain (+0.030), but less certain."
    assert counts == (
        "1 of 3 candidates helps, 1 cannot be told apart from no augmentation, 1 hurts."
    )


def test_no_candidate_at_all() -> None:
    empty = replace(make_ranking(), rows=())
    assert verdict.sentences(empty) == ["Nothing was ranked on mnist5k: no candidate was given."]
    for text in (to_html(empty), to_fragment(empty), to_markdown(empty)):
        assert "Nothing was ranked on mnist5k" in text
