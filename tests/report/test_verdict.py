"""What a ranking comes to, in a few sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_rankings import make_ranking, make_row

from augury.report import findings, to_fragment, to_html, to_markdown, verdict
from augury.report.words import INTERVAL
from augury.results.ranking import Baseline


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
        "Neither of the two candidates can be told apart from no augmentation.",
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


def test_a_sure_change_that_is_too_small_is_not_called_uncertain() -> None:
    small = replace(make_row("invert", 0.004, 0.001), verdict="can't tell")
    (lead, _) = verdict.sentences(replace(make_ranking(), rows=(small,)))
    assert lead.startswith("invert changes too little to matter on mnist5k: +0.004 alignment")
    rows = (small, make_row("flips", -0.02))
    (lead, _) = verdict.sentences(replace(make_ranking(), rows=rows))
    assert lead.startswith("No gain is large enough to matter on mnist5k; the highest: +0.004")


def test_verdict_when_the_highest_is_uncertain() -> None:
    rows = (make_row("invert", 0.03, 0.05), make_row("flips", 0.02), make_row("noise(0.1)", -0.02))
    lead, uncertain, counts = verdict.sentences(replace(make_ranking(), rows=rows))
    assert lead.startswith("flips is the only candidate known to help on mnist5k: +0.020 alignment")
    assert uncertain == "invert has a higher gain (+0.030), but less certain."
    assert counts == (
        "1 of 3 candidates helps, 1 cannot be told apart from no augmentation, 1 hurts."
    )
    more = replace(make_ranking(), rows=(*rows[:2], make_row("hue(0.1)", 0.01), rows[2]))
    assert verdict.sentences(more)[0].startswith(
        "Of the candidates known to help on mnist5k, flips has the highest gain: +0.020 alignment"
    )


def test_no_candidate_at_all() -> None:
    empty = replace(make_ranking(), rows=())
    assert verdict.sentences(empty) == ["Nothing was ranked on mnist5k: no candidate was given."]
    for text in (to_html(empty), to_fragment(empty), to_markdown(empty)):
        assert "Nothing was ranked on mnist5k" in text


def test_differences_too_small_to_count_are_not_called_unclear() -> None:
    """All intervals exclude zero, but no change of a closed form is large enough for a verdict."""
    rows = tuple(
        make_row(spec, gain, 0.0002, verdict="can't tell", probability=0.999)
        for spec, gain in (("noise(0.1)", 0.0007), ("flips", 0.0006), ("invert", -0.0004))
    )
    ranking = replace(make_ranking(), rows=rows)
    assert verdict.negligible(ranking)
    assert verdict.sentences(ranking) == [
        "No candidate matters on mnist5k: none changes the score by 1 % or more.",
        f"noise(0.1) has the highest score: +0.0007 alignment ({INTERVAL} +0.0005 to +0.0009; "
        "over 99\u00a0% likely to raise the score).",
    ]
    assert verdict.first_to_try(ranking) is None
    assert not {"A002", "A003"} & {finding.code for finding in findings.find(ranking)}
    assert not verdict.negligible(replace(ranking, score="trial"))


def test_harm_is_said_where_nothing_is_left_to_gain() -> None:
    rows = (make_row("flips", 0.0), make_row("invert", -0.02))
    known = replace(make_ranking(), rows=rows, baseline=Baseline(1.0, 1.0, 1.0, faultless=True))
    *_, counts = verdict.sentences(known)
    assert counts == "1 of 2 candidates cannot be told apart from no augmentation, 1 hurts."
