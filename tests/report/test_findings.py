"""What a reader should know of a ranking, and what it is for."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from report_rankings import make_ranking, make_row, with_data, with_interval

import augury
from augury.data import describe
from augury.report import findings, to_fragment, to_html, to_markdown, verdict
from augury.report.curves import trend_curves
from augury.results.ranking import Baseline, Ranking, Row, Trend


def codes(ranking: Ranking) -> list[str]:
    """Return the codes of what was found."""
    return [finding.code for finding in findings.find(ranking)]


def test_a_class_that_is_hurt_is_named_with_its_number() -> None:
    row = make_row(
        "rotation(30)",
        0.02,
        per_class={
            "six": with_interval(0.05),
            "nine": with_interval(-0.011),
            "one": with_interval(-0.002),
        },
    )
    (found,) = findings.find(with_data(replace(make_ranking(), rows=(row,)), notes=[]))[:1]
    assert (found.code, found.severity) == ("A001", "warning")
    assert found.evidence == ("rotation(30) hurts class nine (−0.011)",)
    assert findings.hurt_classes(replace(row, verdict="hurts")) == []


def test_findings_of_the_usual_ranking() -> None:
    ranking = make_ranking()
    found = {f.code: f for f in findings.find(ranking)}
    assert "A002" not in found
    assert "A007" not in found
    assert any("rotation(30) helps (+0.017)" in line for line in found["A005"].evidence)
    assert "translation(0.1) (+0.019)" in found["A006"].evidence[0]
    assert found["A008"].evidence == tuple(ranking.dataset["notes"])
    severities = [findings.SEVERITIES.index(f.severity) for f in findings.find(ranking)]
    assert severities == sorted(severities)


def test_nothing_helps_and_wide_intervals_are_found() -> None:
    rows = tuple(make_row(s, 0.001, 0.02) for s in ("invert", "flips", "shear(10)"))
    found = codes(with_data(replace(make_ranking(), rows=rows), notes=[]))
    assert found == ["A002", "A003"]


@pytest.mark.parametrize(
    ("specs", "edge"),
    [
        (["rotation(30)", "rotation(15)"], True),
        (["rotation(15)", "rotation(30)"], False),
        (["rotation(180)", "rotation(30)"], False),  # nothing is stronger than a full turn
        (["resized_crop(0.25)", "resized_crop(0.64)"], True),  # a smaller area is stronger
        (["resized_crop(0.64)", "resized_crop(0.25)"], False),
        (["scaling(0.7,1.3)", "scaling(0.9,1.1)"], True),
        (["rotation(30)", "shear(10)"], False),
        (["rotation(30) >> blur(1,2)", "rotation(15) >> blur(1,2)"], False),
    ],
)
def test_the_edge_of_what_was_tried(specs: list[str], edge: bool) -> None:
    rows = tuple(make_row(spec, gain) for spec, gain in zip(specs, (0.05, 0.02), strict=True))
    assert ("A004" in codes(replace(make_ranking(), rows=rows))) is edge


def trial(*rows: Row, faultless: bool = False, **changes: Any) -> Ranking:
    """Make a ranking by the trial: accuracies in per cent."""
    baseline = Baseline(99.5, 99.5, 99.5, faultless)
    ranking = make_ranking(score="trial", rows=rows, baseline=baseline)
    return with_data(ranking, **{"notes": [], **changes})


def test_what_to_try_first_and_how_sure_that_is() -> None:
    rows = (
        make_row("horizontal_flip", 1.8, 2.0, probability=0.82, verdict="probably helps"),
        make_row("invert", 0.2, 2.0, probability=0.55),
        make_row("flips", -1.0, 2.0, probability=0.1, verdict="probably hurts"),
    )
    ranking = trial(*rows)
    lead, counts = verdict.sentences(ranking)
    assert lead.startswith("Try horizontal_flip first on mnist5k: it probably helps, +1.8 points (")
    assert lead.endswith("; 82\u00a0% likely to help).")
    assert counts == (
        "1 of 3 candidates probably helps, 1 cannot be told apart from no augmentation, "
        "1 probably hurts."
    )
    (found,) = [f for f in findings.find(ranking) if f.code == "A002"]
    assert found.title == "No gain is certain"
    assert found.advice.startswith("Try horizontal_flip first: train with it and without it")
    assert "flips" not in " ".join(found.evidence)
    text = to_markdown(ranking)
    assert "likely to help" in text
    assert "Train without augmentation" not in text
    page = html.unescape(to_html(ranking))
    assert "Likely to help" in page
    assert 'class="verdict likely"' in page
    assert 'class="verdict doubtful"' in page
    assert 'augury.parse("horizontal_flip")' in page


def test_nobody_is_advised_against_all_from_ignorance() -> None:
    rows = [make_row(f"noise({k / 100})", 0.5 - k / 9, 3.0) for k in range(1, 9)]
    text = to_markdown(trial(*rows))
    assert "try noise(0.01) first" in text.replace("\\", "")
    assert "without augmentation, or" not in text


AGAINST = ("expected to help", "least harmful", "Leave these out", "out for now")


def test_what_cannot_be_told_is_not_said_to_be_useless() -> None:
    ranking = trial(
        make_row("flips", -0.1, 16.6, probability=0.5),
        make_row("invert", -0.4, 9.0, probability=0.48),
        make_row("noise(0.1)", -8.0, 9.0, probability=0.04, verdict="probably hurts"),
    )
    said = "flips has the highest estimate: −0.1 points (95\u00a0% interval −16.7 to +16.5; "
    assert verdict.sentences(ranking) == [
        "This ranking cannot tell whether any candidate helps on mnist5k.",
        f"Of those that may help, {said}50\u00a0% likely to help).",
        "2 of 3 candidates cannot be told apart from no augmentation, 1 probably hurts.",
    ]
    (found,) = [f for f in findings.find(ranking) if f.code == "A002"]
    assert found.title == "It is unclear whether any candidate helps"
    assert [line.split(":")[0] for line in found.evidence] == ["flips", "invert"]
    assert "50\u00a0% likely to help" in found.evidence[0]
    assert found.advice.startswith("This is evidence neither for these candidates nor against them")
    for text in (to_markdown(ranking), html.unescape(to_html(ranking)), to_fragment(ranking)):
        assert not [words for words in AGAINST if words in text]


def test_that_nothing_helps_is_said_where_all_is_known_to_hurt() -> None:
    hurts = make_row("invert", -1.0, 1.1, probability=0.2, verdict="probably hurts")
    idle = make_row("flips", 0.0, 0.0, probability=0.5)  # changes nothing
    for rows in ((hurts, make_row("noise(0.1)", -2.0, 1.0)), (idle, hurts)):
        ranking = trial(*rows)
        assert verdict.sentences(ranking)[0] == "No candidate is expected to help on mnist5k."
        (found,) = [f for f in findings.find(ranking) if f.code == "A002"]
        assert found.advice.startswith("Leave these out for now.")


@pytest.mark.parametrize("gain", [2.0, -0.1, -5.0])
def test_without_verdicts_nothing_is_advised(gain: float) -> None:
    rows = (make_row("invert", gain, 6.0), make_row("flips", gain - 1, 6.0))
    learnt = "the network learnt nothing, so the trial says nothing about augmentations"
    ranking = replace(trial(*rows), warnings=(learnt,))
    lead, highest = verdict.sentences(ranking)
    assert lead == "No verdicts are given for mnist5k."
    assert highest.startswith("invert has the highest estimate: ")
    assert not {"A002", "A003"} & set(codes(ranking))  # an interval may well exclude zero
    alone = replace(ranking, rows=(make_row("invert", gain, 1.0, verdict="can't tell"),))
    said = " ".join(verdict.sentences(alone))
    assert said.startswith(
        "No verdicts are given for mnist5k. invert was the only candidate, with "
    )
    assert "told apart" not in said
    assert "No verdicts are given, so there is nothing to copy." in to_markdown(ranking)
    for text in (to_markdown(ranking), html.unescape(to_html(ranking)), to_fragment(ranking)):
        assert not [words for words in (*AGAINST, "to try first", "Try ") if words in text]


def test_at_the_ceiling_nothing_is_left_to_gain() -> None:
    rows = (make_row("invert", 0.0, 0.0), make_row("flips", 0.0, 0.0))
    ranking = trial(*rows, faultless=True)
    assert verdict.sentences(ranking)[0].startswith("Nothing is left to gain on mnist5k")
    assert codes(ranking) == ["A009"]
    assert "A009" not in codes(trial(*rows))
    assert verdict.first_to_try(trial(make_row("invert", 0.1, 0.2), faultless=True)) is None
    gains = trial(make_row("flips", 0.7, 0.2, verdict="probably helps"), rows[0], faultless=True)
    assert "A009" not in codes(gains)
    assert verdict.sentences(gains)[0].startswith("Try flips first")


def test_a_trial_without_an_error_leaves_nothing_to_gain() -> None:
    """That all were right shows an error below one in so many: the score is not 100 %."""
    y = np.arange(120) % 3
    x = np.random.default_rng(0).integers(0, 40, (120, 8, 8), np.uint8)
    for k in range(3):
        x[y == k, 2 * k : 2 * k + 3] += 200
    given = ["brightness(0.1)", "contrast(0.1)"]
    ranking = augury.rank(x, y, given, epochs=20, effort=3, device="cpu")
    assert 99 < ranking.baseline.score < 99.95
    assert codes(ranking) == ["A009"]
    assert verdict.sentences(ranking)[0].startswith("Nothing is left to gain on data")
    again = Ranking.from_json(ranking.to_json())
    assert again.baseline == ranking.baseline
    x[:12] = x[12:24]  # two examples look alike, but their labels differ
    y[:12] = (y[:12] + 1) % 3
    assert "A009" not in codes(augury.rank(x, y, given, epochs=20, effort=3, device="cpu"))


def test_results_that_do_not_say_whether_there_was_an_error_are_read() -> None:
    text = trial(make_row("invert", 0.0)).to_json()
    older = text.replace(',\n    "faultless": false', "")
    assert older != text
    assert Ranking.from_json(older) == Ranking.from_json(text)


@pytest.mark.parametrize(
    ("warning", "code", "first"),
    [
        ("few-examples", "A011", True),
        ("many-classes", "A012", True),
        ("unequal-classes", "A010", False),
        ("few-in-class", "A013", False),
    ],
)
def test_what_the_data_are_warned_of(warning: str, code: str, first: bool) -> None:
    rows = (make_row("invert", 2.0, 1.0), make_row("flips", 1.0, 3.0))
    ranking = trial(*rows, warnings=[[warning, "there is so much of it"]])
    (found,) = [f for f in findings.find(ranking) if f.code == code]
    assert found.evidence == ("there is so much of it",)
    for text in (to_html(ranking), to_markdown(ranking), to_fragment(ranking)):
        said = text.find(found.title)
        assert (0 < said < text.index("helps most on")) is first
    assert code not in codes(trial(*rows))


def test_why_there_are_no_verdicts_is_said_first() -> None:
    ranking = trial(make_row("invert", 2.0, 3.0), make_row("flips", 1.0, 3.0))
    text = to_markdown(replace(ranking, warnings=("the trial was too short",)))
    said = "**No verdicts are given.** The trial was too short."
    assert 0 < text.index(said) < text.index("invert has the highest estimate")


def test_the_warnings_of_data_are_known() -> None:
    few = augury.as_dataset(np.eye(24), [0] * 20 + [1] * 2 + [2] * 2)
    ranking = trial(make_row("invert", 2.0, 1.0), **describe(few, seen=4))
    assert {"A010", "A011", "A012", "A013"} <= set(codes(ranking))


def test_the_plan_is_printed() -> None:
    plan = {"epochs": 30, "examples": 5000, "side": 32, "network": "a ResNet-18"}
    plan["assumed"] = ["epochs", "network"]
    trend = Trend("invert", "epochs", (10, 30, 90), (0.5, 1.0, 1.5), (-1, 0.1, 0.5), (2, 2, 2.5))
    ranking = replace(
        trial(make_row("invert", 1.0, 0.5), make_row("flips", 0.5, 1.0)),
        plan=plan, effort={"steps": 1600, "repeats": 3}, extrapolation=(trend,),
    )  # fmt: skip
    said = (
        "The gains are for training for 30 epochs on 5,000 examples at 32 pixels with a ResNet-18 "
        "(epochs and network assumed)."
    )
    for text in (to_html(ranking), to_fragment(ranking)):
        assert said in text
    assert said.replace("(", "(") in to_markdown(ranking).replace("\\", "")
    page = html.unescape(to_html(ranking))
    assert "Gain against epochs; planned: 30." in page
    assert "steps 1,600, repeats 3" in page
    (drawing,) = trend_curves(ranking)
    assert [dot.tone for dot in drawing.dots] == ["unsure", "helps", "helps"]
    assert drawing.shaded is not None
    assert drawing.shaded[0] < drawing.dots[1].x < drawing.shaded[1]
    assert drawing.shaded[1] < drawing.dots[2].x
    assert Ranking.from_json(ranking.to_json()) == replace(ranking, gallery=None)
